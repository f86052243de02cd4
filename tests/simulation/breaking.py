"""Breaks one rule of the running code for the length of a run, to see that the simulation notices.

The broken rules are those of ``tests.mutations``: a snippet of a file and what stands in its place. There the file is
changed in a copy of the project; here the functions that contain the snippet are compiled anew and put in place of the
sound ones, so that thousands of runs can be tried in one process.
"""

from __future__ import annotations
import __future__

import ast
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.mutations.mutation import Mutation
from tests.simulation.modules import ROOMS

Function = ast.FunctionDef | ast.AsyncFunctionDef


class CannotBreak(Exception):
    """The rule is not inside a function, or its snippet is not in the file (any more)."""


@contextmanager
def broken(mutation: Mutation) -> Iterator[None]:
    """Run the block with the rule broken. Raises ``CannotBreak``."""
    module = importlib.import_module(mutation.file.removesuffix(".py").replace("/", "."))
    assert module.__file__ is not None
    source = Path(module.__file__).read_text()
    if source.count(mutation.snippet) != 1:
        raise CannotBreak(f"{mutation.name}: its snippet occurs {source.count(mutation.snippet)} times")
    changed = list(_changed(ast.parse(source), ast.parse(source.replace(mutation.snippet, mutation.broken)), module))
    replaced = {id(vars(owner)[function.name]): _compiled(function, module) for owner, function in changed}
    places = [(owner, name, value) for owner in _owners(changed) for name, value in list(vars(owner).items())]
    kept = [(owner, name, value) for owner, name, value in places if id(value) in replaced]
    try:
        for owner, name, value in kept:
            setattr(owner, name, replaced[id(value)])
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)


def _owners(changed: Sequence[tuple[Any, Function]]) -> list[Any]:
    """The changed functions' own classes and modules, and every module that may have imported one by name."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] in ROOMS]
    return [*(owner for owner, _ in changed if not isinstance(owner, ModuleType)), *modules]


def _changed(sound: ast.AST, other: ast.AST, owner: Any) -> Iterator[tuple[Any, Function]]:
    """The functions and methods that differ, with the module or class that has them."""
    for before, after in zip(_parts(sound), _parts(other), strict=True):
        if ast.dump(before) == ast.dump(after):
            continue
        if isinstance(after, Function):
            yield owner, after
        elif isinstance(after, ast.ClassDef):
            yield from _changed(before, after, getattr(owner, after.name))
        else:
            raise CannotBreak(f"line {getattr(after, 'lineno', 0)} of {owner} is not inside a function")


def _parts(node: ast.AST) -> list[ast.stmt]:
    assert isinstance(node, ast.Module | ast.ClassDef)
    return node.body


def _compiled(function: Function, module: ModuleType) -> Any:
    """The function as an attribute of its owner, its decorators applied, over the module's own names."""
    tree = ast.fix_missing_locations(ast.Module([function], []))
    flags = __future__.annotations.compiler_flag
    made: dict[str, Any] = {}
    exec(compile(tree, f"<broken {module.__name__}>", "exec", flags, dont_inherit=True), vars(module), made)
    return made[function.name]
