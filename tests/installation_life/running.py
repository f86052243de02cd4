"""One life from a seed, and its story."""

from __future__ import annotations

import random
import traceback
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.installation_life.life import Life
from tests.installation_life.surroundings import Surroundings

STEPS = 400


@dataclass
class Lived:
    """What happened. ``wrong``: with a traceback, where the installation and the model did not agree."""

    story: list[str] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    wrong: str | None = None


def live(seed: int, steps: int = STEPS, thrift: str | None = None) -> Lived:
    """A life of so many steps, over the HBase behind a gateway where one is given.

    What is done is the seed's; when it is done, and so its timestamps, is not.
    """
    lived = Lived()
    with pytest.MonkeyPatch.context() as patch:
        around = Surroundings(random.Random(seed), patch, thrift)
        try:
            around.start()
            life = Life(around, random.Random(seed), lived.story.append)
            for _ in range(steps):
                life.step()
            life.end()
            lived.counted = life.counted()
        except Exception:
            lived.wrong = traceback.format_exc()
        finally:
            around.close()
    return lived
