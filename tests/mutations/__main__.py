"""Break one rule at a time and demand that a test fails: ``python -m tests.mutations``.

A test that cannot fail proves nothing. Each entry of ``rules.py`` breaks one rule in a copy of the project, and the
tests that it names have to fail there, by an assertion and not because the copy no longer imports. The project itself
is never touched.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.imports import ROOT
from tests.mutations.mutation import Mutation
from tests.mutations.rules import RULES

AT_ONCE = 2
RUN_SECONDS_MAX = 120
"""Of the tests of one mutation."""
SOUND_RUN_SECONDS_MAX = 1_800
"""Of those of all mutations, with no rule broken."""
COMPILE_SECONDS_MAX = 300
LEFT_OUT = (".git", ".venv", ".*_cache", ".hypothesis", "build", "*.egg-info", "*.pyc")
"""Of the project, in the copies that are broken: what is made, and nothing that a test could read."""
ENVIRONMENT_LEFT_OUT = ("PYTEST_ADDOPTS", "PYTHONPATH", "PYTHONSAFEPATH")
"""Of the tests that run in a copy: what would have them, or a process that they begin, import the sound project."""
_COMPILE = """
from tso.warmth import warm_kernels
warm_kernels()
"""
OUTPUT_LINES_SHOWN = 30
TESTS_FAILED = 1
"""pytest's exit code when tests ran and failed; above it are errors of the entry: nothing collected, no such test."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of tests ended; ``exit_code`` ``None``: not within the time it had."""

    exit_code: int | None
    output: str
    seconds: float

    @property
    def first_failure(self) -> str | None:
        """The test that failed, if the run ended by a failing test."""
        found = re.search(r"^FAILED \S*?::(\S+)", self.output, re.MULTILINE)
        return found[1] if found and self.exit_code == TESTS_FAILED else None

    @property
    def last_lines(self) -> str:
        """The end of what pytest said."""
        return "\n".join(self.output.splitlines()[-OUTPUT_LINES_SHOWN:])


def copy_project(source: Path, copy: Path) -> None:
    """Copy all that the tests may import or read, and the kernels that are compiled."""
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), dirs_exist_ok=True)


def compile_kernels(project: Path) -> None:
    """Compile what is not compiled yet, which takes longer than some tests wait for a process to begin."""
    command = [sys.executable, "-B", "-c", _COMPILE]
    subprocess.run(command, cwd=project, timeout=COMPILE_SECONDS_MAX, check=True)


def compile_modules(project: Path) -> None:
    """Compile every module to byte code that is taken only for a file that says what it said when it was compiled.

    By default its size and the second of its last change are compared, which breaking a rule may leave as they were.
    """
    command = [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "."]
    subprocess.run(command, cwd=project, timeout=COMPILE_SECONDS_MAX, check=True)


def stale_entries(project: Path, mutations: Iterable[Mutation]) -> Iterator[str]:
    """What is wrong with entries whose snippet does not occur exactly once any more, or that change nothing."""
    for mutation in mutations:
        file = project / mutation.file
        found = file.read_text().count(mutation.snippet) if file.is_file() else 0
        if found != 1:
            yield f"stale entry {mutation.name!r}: its snippet occurs {found} times in {mutation.file}, not once"
        if mutation.snippet == mutation.broken:
            yield f"entry {mutation.name!r} breaks nothing: snippet and replacement are the same"


def run_tests(project: Path, tests: Iterable[str], *options: str, seconds_max: int = RUN_SECONDS_MAX) -> Run:
    """Run tests in a copy of the project, up to the first that fails; ``options`` are pytest's."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=short", "-m", "not integration", *options]
    command += ["-p", "no:cacheprovider", "-p", "tests.mutations.plugin", *(f"tests/{test}" for test in tests)]
    # No byte code but what is there: that of a file that changes twice a second would be taken for current.
    environment = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT_LEFT_OUT}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    started = time.monotonic()
    try:
        ended = subprocess.run(
            command,
            cwd=project,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds_max,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Run(None, f"not ended after {seconds_max} seconds", time.monotonic() - started)
    return Run(ended.returncode, ended.stdout, time.monotonic() - started)


class Copies:
    """Copies of the project to break, one for each run that is under way.

    They are used again, since kernels are kept compiled beside the source.
    """

    def __init__(self, project: Path, directory: Path) -> None:
        self._project = project
        self._directory = directory
        self._idle: SimpleQueue[Path] = SimpleQueue()

    @contextmanager
    def broken(self, mutation: Mutation) -> Iterator[Path]:
        """A copy in which the rule is broken."""
        copy = self._take()
        file = copy / mutation.file
        sound = file.read_text()
        file.write_text(sound.replace(mutation.snippet, mutation.broken))
        yield copy
        file.write_text(sound)
        self._idle.put(copy)

    def _take(self) -> Path:
        try:
            return self._idle.get_nowait()
        except Empty:
            copy = Path(tempfile.mkdtemp(dir=self._directory))
            copy_project(self._project, copy)
            compile_modules(copy)
            return copy


def run_mutated(copies: Copies, mutation: Mutation) -> Run:
    """Run an entry's tests in a copy in which the rule is broken."""
    with copies.broken(mutation) as copy:
        return run_tests(copy, mutation.caught_by.split())


def verdict(mutation: Mutation, run: Run) -> str:
    """The line on one mutation."""
    if run.first_failure:
        return f"caught: {mutation.name} ({run.first_failure}, {run.seconds:.1f} s)"
    if run.exit_code == 0:
        return f"SURVIVED: {mutation.name} ({mutation.caught_by} passed, {run.seconds:.1f} s)"
    return f"BROKEN ENTRY: {mutation.name} (pytest ended with {run.exit_code}, by no failing test)\n{run.last_lines}"


def run_all(console: Console, copies: Copies, mutations: Sequence[Mutation]) -> int:
    """Run every mutation, telling of each; returns how many were caught."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    caught = 0
    with Progress(*columns, console=console, transient=True) as progress, ThreadPoolExecutor(AT_ONCE) as pool:
        task = progress.add_task("breaking rules", total=len(mutations))
        runs = pool.map(lambda mutation: run_mutated(copies, mutation), mutations)
        for mutation, run in zip(mutations, runs, strict=True):
            caught += run.first_failure is not None
            console.print(verdict(mutation, run), soft_wrap=True, markup=False, highlight=False)
            progress.advance(task)
    return caught


def changed_since(commit: str) -> frozenset[str]:
    """The files of the project that are otherwise than they were, by their paths below it."""
    command = ["git", "diff", "--name-only", "--relative", commit, "--"]
    try:
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or error
        raise click.UsageError(f"git does not tell what changed since {commit!r}: {said}") from None
    return frozenset(ended.stdout.splitlines())


def chosen(
    mutations: Sequence[Mutation], words: Sequence[str] = (), changed: frozenset[str] | None = None
) -> list[Mutation]:
    """The entries to run: all, or those that have one of ``words`` in their name, file or tests, and of these those
    whose file or tests are among ``changed``.
    """

    def has_word(mutation: Mutation) -> bool:
        told = f"{mutation.name} {mutation.file} {mutation.caught_by}".lower()
        return not words or any(word.lower() in told for word in words)

    def has_changed(mutation: Mutation) -> bool:
        files = {mutation.file, *(f"tests/{test.partition('::')[0]}" for test in mutation.caught_by.split())}
        return changed is None or not files.isdisjoint(changed)

    found = [mutation for mutation in mutations if has_word(mutation) and has_changed(mutation)]
    if not found:
        raise click.UsageError("no mutation is like that: --list shows those that there are")
    return found


@click.command()
@click.option(
    "--only",
    "words",
    multiple=True,
    metavar="WORD",
    help="Only those with this, or another, in name, file or tests.",
)
@click.option("--since", metavar="COMMIT", help="Only those whose file or tests have changed since then.")
@click.option("--list", "only_list", is_flag=True, help="Show the names and run nothing.")
def main(words: tuple[str, ...], since: str | None, only_list: bool) -> None:
    """Break the rules one at a time, in a copy, and see that tests fail."""
    mutations = chosen(RULES, words, None if since is None else changed_since(since))
    if only_list:
        click.echo("\n".join(mutation.name for mutation in mutations))
        return
    console = Console()
    with tempfile.TemporaryDirectory(prefix="pythia-mutations-") as directory:
        project = Path(directory) / "sound"
        project.mkdir()
        copy_project(ROOT, project)  # once, so that all mutations are of one and the same state
        stale = list(stale_entries(project, RULES))
        if stale:
            raise click.ClickException("\n".join(stale))
        compile_kernels(project)
        named = sorted({test for mutation in mutations for test in mutation.caught_by.split()})
        sound = run_tests(project, named, seconds_max=SOUND_RUN_SECONDS_MAX)
        if sound.exit_code != 0:
            raise click.ClickException(f"the tests fail with every rule in force:\n{sound.last_lines}")
        console.print(f"with every rule in force the tests pass ({sound.seconds:.1f} s)", highlight=False)
        caught = run_all(console, Copies(project, Path(directory)), mutations)
    click.echo(f"{caught} of {len(mutations)} caught")
    if caught < len(mutations):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
