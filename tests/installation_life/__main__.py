"""Random lives of an installation against a model: ``python -m tests.installation_life``."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from itertools import count

import click

from tests.installation_life.running import STEPS, live


@click.command()
@click.option("--seed", type=int, help="Only this seed, with its story.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Go on for so long.")
@click.option("--from-seed", type=int, default=1, show_default=True, help="Begin with this one.")
@click.option("--thrift", metavar="HOST:PORT", help="Over HBase behind this gateway, in place of its twin.")
@click.option("--steps", type=int, default=STEPS, show_default=True, help="Of each life.")
def main(seed: int | None, seconds: float, from_seed: int, steps: int, thrift: str | None) -> None:
    """Do at random all that the library can do, and compare what comes of it with a model."""
    logging.disable()  # what fails is told by the story
    ends_s, failed, totals = time.monotonic() + seconds, 0, Counter[str]()
    for number in count(from_seed) if seed is None else [seed]:
        lived = live(number, steps, thrift)
        totals += lived.counted
        for line in lived.story if lived.wrong or seed is not None else ():
            click.echo(line)
        if lived.wrong:
            failed += 1
            click.echo(f"seed {number}: {lived.wrong}")
        if time.monotonic() >= ends_s:
            break
    met = ", ".join(f"{many:,} {what}" for what, many in totals.most_common())
    click.echo(f"seeds {seed or from_seed} to {number}: {met}; {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
