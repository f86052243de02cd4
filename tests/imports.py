"""What the project's modules import of one another, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """Each module that is imported, with each name that is taken out of it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            raise AssertionError(f"{path} imports relatively: name the room")


def defining(module: str, name: str | None, root: Path = ROOT) -> Path | None:
    """The file of this project that defines what is imported; a package's door is passed, not walked into."""
    place = root / module.replace(".", "/")
    if not place.is_dir():
        return place.with_suffix(".py") if place.with_suffix(".py").is_file() else None
    if name is not None and (place / f"{name}.py").is_file():
        return place / f"{name}.py"
    door = place / "__init__.py"
    if not door.is_file():
        return None
    behind = (defining(inner, name, root) for inner, taken in imports(door) if name is not None and taken == name)
    return next(behind, door)


def taken_from(path: Path, root: Path = ROOT) -> set[Path]:
    """The files of this project that define what a module imports."""
    files = (defining(module, name, root) for module, name in imports(path))
    return {file for file in files if file is not None}
