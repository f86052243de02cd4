"""A committed list of jars, the single source of what a cluster runs on, and the check of files against it.

Invariant: an ``Artifact`` is safe to use as a file name and in a build description, and its sha256 is the only
ground on which a file is trusted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from devcluster.errors import JarListDamaged

LIST_NAME = "jars.sha256"
_LINE = re.compile(r"([0-9a-f]{64})  ([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Artifact:
    """One jar by its Maven coordinates, and the sha256 (hex) of its content."""

    group: str
    name: str
    version: str
    classifier: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The name under which Maven repositories hold it."""
        return "-".join(filter(None, (self.name, self.version, self.classifier))) + ".jar"

    @property
    def coordinates(self) -> str:
        """``group:artifact:version[:classifier]``."""
        return ":".join(filter(None, (self.group, self.name, self.version, self.classifier)))

    def matches(self, path: Path) -> bool:
        """Whether the file at ``path`` is there and is this jar."""
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False


def parse_list(text: str) -> tuple[Artifact, ...]:
    """The artifacts of a list: lines of sha256, two blanks, coordinates; empty lines and those with ``#`` are skipped.

    Raises:
        JarListDamaged: a line of another form, a jar named twice, or no jar at all.
    """
    artifacts = tuple(
        _parse_line(number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.startswith("#")
    )
    names = [artifact.file_name for artifact in artifacts]
    if not names:
        raise JarListDamaged(f"{LIST_NAME} names no jar; restore the file")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise JarListDamaged(f"{LIST_NAME} names {repeated[0]} twice; restore the file")
    return artifacts


def _parse_line(number: int, line: str) -> Artifact:
    found = _LINE.fullmatch(line)
    if found is None:
        raise JarListDamaged(f"line {number} of {LIST_NAME} is not 'sha256  group:artifact:version'; restore the file")
    sha256, group, name, version, classifier = found.groups()
    return Artifact(group, name, version, classifier or "", sha256)


def committed_list(package: str = "devcluster") -> tuple[Artifact, ...]:
    """The list that comes with a package: this one's, or that of another which runs jars of its own."""
    return parse_list(resources.files(package).joinpath(LIST_NAME).read_text(encoding="utf-8"))


def digest(artifacts: Iterable[Artifact]) -> str:
    """Sixteen hex digits that change when any artifact of the list does."""
    lines = sorted(f"{artifact.sha256} {artifact.coordinates}" for artifact in artifacts)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def not_matching(artifacts: Iterable[Artifact], directory: Path) -> tuple[Artifact, ...]:
    """Those of ``artifacts`` whose file in ``directory`` is missing, partial or damaged."""
    return tuple(artifact for artifact in artifacts if not artifact.matches(directory / artifact.file_name))
