"""What a kernel is compiled from has another fingerprint after any change that could change the machine code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba.extending import intrinsic

from kernels import KERNELS, Kernel, kernel
from kernels.commands import load_all
from kernels.fingerprints import Untellable, fingerprint

SOURCES = {
    "sizes": "SIZE = 3\nUNUSED = 1\nTABLE = np.arange(4)\nPAIR = (1, b'x')\nFACTOR = np.uint64(5)",
    "called": "from sizes import FACTOR\n@kernel()\ndef called(number):\n    return number * FACTOR",
    "caller": """
from sizes import PAIR, SIZE, TABLE
from called import called
@kernel()
def caller(number):
    text = "text"
    def inner(other):
        return called(other) + SIZE
    return inner(number) + TABLE[PAIR[0]] + len(text)
""",
}


def made(sources: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Kernel[Any, Any]:
    """``caller`` of modules that are executed anew."""
    for name, text in sources.items():
        module = ModuleType(name)
        module.__dict__.update(np=np, kernel=kernel)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    found: Kernel[Any, Any] = sys.modules["caller"].caller
    return found


def is_told_apart(module: str, text: str, instead: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether ``caller`` is another one where ``instead`` stands in a module in place of ``text``."""
    assert text in SOURCES[module]
    changed = SOURCES | {module: SOURCES[module].replace(text, instead)}
    return fingerprint(made(SOURCES, monkeypatch)) != fingerprint(made(changed, monkeypatch))


@pytest.fixture(autouse=True)
def _only_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.KERNELS", [])


def test_the_same_sources_have_one_fingerprint_also_once_they_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(SOURCES, monkeypatch)
    said = fingerprint(one)
    for each in ("called", "caller"):
        sys.modules[each].__dict__[each].compile()
    assert fingerprint(one) == said == fingerprint(made(SOURCES, monkeypatch))
    assert len(said) == 64


@pytest.mark.parametrize(
    ("module", "text", "instead"),
    [
        ("caller", "+ SIZE", "- SIZE"),
        ("caller", '"text"', '"a text"'),
        ("caller", "PAIR[0]", "PAIR[-3]"),
        ("caller", "return inner(number)", "return called(number)"),
        ("called", "number * FACTOR", "FACTOR * number"),
        ("sizes", "SIZE = 3", "SIZE = 4"),
        ("sizes", "SIZE = 3", "SIZE = 3.0"),
        ("sizes", "SIZE = 3", "SIZE = True"),
        ("sizes", "b'x'", "b'y'"),
        ("sizes", "np.uint64(5)", "np.uint64(6)"),
        ("sizes", "np.uint64(5)", "np.int64(5)"),
        ("sizes", "np.arange(4)", "np.arange(1, 5)"),
        ("sizes", "np.arange(4)", "np.arange(4).reshape(2, 2)"),
        ("sizes", "np.arange(4)", "np.arange(4, dtype=np.uint32)"),
    ],
)
def test_a_change_of_what_is_compiled_in_has_another(
    module: str, text: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_told_apart(module, text, instead, monkeypatch)


@pytest.mark.parametrize(
    ("module", "text", "instead"),
    [
        ("caller", "@kernel()", "@kernel()"),
        ("sizes", "UNUSED = 1", "UNUSED = 2"),
        ("sizes", "SIZE = 3", "\n\nSIZE = 3"),
        ("called", "@kernel()", "# why\n@kernel()"),
    ],
)
def test_a_change_of_anything_else_has_not(
    module: str, text: str, instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_told_apart(module, text, instead, monkeypatch)


def test_what_else_decides_over_the_code_is_told_by_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    one = made(SOURCES, monkeypatch)
    said = {fingerprint(one, *how) for how in [(), ("int64(int64)",), ("int64(int64)", True), ("int64(int32)", True)]}
    assert len(said) == 4


def of(take: object) -> Callable[[], object]:
    def function() -> object:
        return take

    return function


def test_what_a_function_closes_over_belongs_to_it() -> None:
    assert fingerprint(of(1)) != fingerprint(of(2))
    assert fingerprint(of(frozenset("abc"))) == fingerprint(of(frozenset("cba")))


def test_one_that_calls_itself_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    recursive = SOURCES | {"caller": "@kernel()\ndef caller(number):\n    return caller(number - 1) if number else 0"}
    other = SOURCES | {"caller": "@kernel()\ndef caller(number):\n    return caller(number - 2) if number else 0"}
    assert fingerprint(made(recursive, monkeypatch)) != fingerprint(made(other, monkeypatch))


def test_what_says_to_the_compiler_itself_what_to_make_is_told_by_its_definition() -> None:
    def with_width(bits: int) -> Any:
        word = ir.IntType(bits)

        def define(typing: Any, number: Any) -> Any:
            return number(number), lambda context, builder, signature, arguments: ir.Constant(word, 1)

        return intrinsic(define)

    assert fingerprint(of(with_width(32))) == fingerprint(of(with_width(32))) != fingerprint(of(with_width(64)))


@pytest.mark.parametrize("what", [{}, [1], sys, object(), np.array([[]], object)])
def test_what_cannot_be_told_is_refused_with_what_may_be_there(what: object) -> None:
    with pytest.raises(Untellable, match="kernels take numbers, text, arrays"):
        fingerprint(of(what))


def test_an_object_that_only_says_where_it_lies_is_refused() -> None:
    with pytest.raises(Untellable, match="give the kernel what it says instead"):
        fingerprint(of(ir.IRBuilder()))


def test_every_kernel_there_is_can_be_told_and_no_two_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    load_all()
    said = [fingerprint(each) for each in KERNELS]
    assert len(said) > 100
    assert len(set(said)) == len(said)


def test_another_process_says_the_same() -> None:
    look = "from kernels.fingerprints import fingerprint; from store.lines import packed as k; print(fingerprint(k))"
    said = {
        subprocess.run(
            [sys.executable, "-c", look], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
