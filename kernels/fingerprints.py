"""What a kernel is made of, as a hash: its own code, and all that numba compiles into it from elsewhere.

numba's own cache looks at the file that a function is in. Other functions that it calls, and constants that it takes
from other modules, are compiled into it, too, and a change of those alone goes unnoticed: a release that changed them
would go on with the machine code of the one before it.

The invariant: two functions with one fingerprint are compiled to the same, by one version of numba, for one machine and
the same types. What cannot be told apart by what it says is refused, and not passed over.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np

LIBRARIES = frozenset({"llvmlite", "math", "numba", "numpy", "typing"})
"""What kernels may take from there is told by its name, since the versions are part of every fingerprint."""
_VERSIONS = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__)
_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(...))


class Untellable(TypeError):
    """A kernel takes something from around it of which this module cannot say what it is; the text says what to do."""


def fingerprint(function: Callable[..., Any], *how: object) -> str:
    """64 hexadecimal digits. ``how``: plain values, of what else decides over the machine code (the signature, say).

    Raises ``Untellable``.
    """
    said = sha256(repr((_VERSIONS, function.__module__, function.__qualname__, how)).encode())
    for part in _of_function(function, ()):
        said.update(b"%d:" % len(part) + part)
    return said.hexdigest()


def _of_function(wrapped: Callable[..., Any], within: tuple[object, ...]) -> Iterator[bytes]:
    """``within``: whose parts these are, from the outermost on: one that calls itself is told once."""
    function = inspect.unwrap(wrapped)
    if not isinstance(function, FunctionType):
        raise Untellable(f"{wrapped!r} wraps {function!r}, which is no function")
    if function in within:
        yield b"itself %d" % within.index(function)
        return
    around = inspect.getclosurevars(function).nonlocals
    for code in _codes(function.__code__):
        yield from (code.co_code, repr((code.co_names, code.co_argcount, code.co_freevars)).encode())
        yield from _of_values(code.co_consts, (*within, function))
        for name in code.co_names:
            if name in function.__globals__:
                yield name.encode()
                yield from _of_value(function.__globals__[name], (*within, function))
    yield from _of_values((function.__defaults__, tuple(sorted(around))), (*within, function))
    yield from _of_values(tuple(around.values()), (*within, function))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of those that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _of_values(values: tuple[object, ...], within: tuple[object, ...]) -> Iterator[bytes]:
    for value in values:
        if not isinstance(value, CodeType):  # which is told by itself
            yield from _of_value(value, within)


def _of_value(value: Any, within: tuple[object, ...]) -> Iterator[bytes]:
    if isinstance(value, _PLAIN):
        yield f"{type(value).__name__} {value!r}".encode()
    elif isinstance(value, np.generic | np.ndarray) and not value.dtype.hasobject:  # whose bytes are addresses
        yield f"{value.dtype.str} {value.shape}".encode()
        yield value.tobytes()
    elif isinstance(value, tuple | frozenset):
        yield f"{type(value).__name__} {len(value)}".encode()
        yield from _of_values(tuple(sorted(value, key=repr)) if isinstance(value, frozenset) else value, within)
    elif isinstance(value, type | BuiltinFunctionType) and value.__module__ == "builtins":
        yield value.__qualname__.encode()
    elif _library(value) in LIBRARIES and not isinstance(value, np.ndarray):
        yield _name_in_library(value).encode()
    elif callable(value) and isinstance(inspect.unwrap(value), FunctionType):
        yield from _of_function(value, within)
    else:
        raise Untellable(
            f"{within[-1]} takes {value!r}: kernels take numbers, text, arrays and tuples of them, other kernels, and "
            f"what {', '.join(sorted(LIBRARIES))} have"
        )


def _library(value: Any) -> str:
    """The top of the package that something comes from; of an object, its class."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0]
    # A kernel, once compiled, is an object of numba's, and ours for all that: what it wraps says whose it is.
    inner = inspect.unwrap(value) if callable(value) else value
    where = inner if isinstance(inner, type | FunctionType | BuiltinFunctionType) else type(inner)
    return str(where.__module__).partition(".")[0]


def _name_in_library(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    text = f"{type(value).__qualname__} {value}"
    if " at 0x" in text:  # where an object lies says nothing of what it is, and is another place each time
        raise Untellable(f"{value!r} cannot be told from others of its class: give the kernel what it says instead")
    return text
