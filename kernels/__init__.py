"""Functions that numba compiles, once one of them is called.

Importing numba, and reading what it compiled before from its cache, takes longer than all else that a client imports.
Spark imports a data source in two or three new processes for each query, which call none of its kernels.

Kernels that go over bytes index them by unsigned numbers (``data[np.uint64(at + place)]``), which are known not to be
negative: a signed index may count from the end, so that numba asks each time, and no loop over bytes becomes one over
words.

The invariant: what is compiled is what ``numba.njit`` would have made of the function where it is defined, for the
types that its signature names; other types are refused. What can be kept is kept for the next process; where nothing
can, each compiles for itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar

log = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_KERNELS: list[Kernel[..., Any]] = []


class Kernel(Generic[Parameters, Result]):
    """One function. ``signature``: numba's, of one that Python calls; ``None``: of one that only other kernels call."""

    are_kept: ClassVar[bool] = True
    """Whether what is compiled could be kept for the next process so far."""

    def __init__(self, function: Callable[Parameters, Result], signature: str | None, *, nogil: bool) -> None:
        self._function = function
        self._signature = signature
        self._nogil = nogil
        self._compiled: Callable[Parameters, Result] | None = None
        self.__doc__ = function.__doc__
        _KERNELS.append(self)

    def __call__(self, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        """Run it, compiled."""
        return (self._compiled or self.compile())(*arguments, **named)

    def compile(self) -> Callable[Parameters, Result]:
        """Compile it now, or read it from numba's cache; harmless to repeat, and in several threads at once."""
        if self._compiled is None:
            self._resolve()
            try:
                self._compiled = self._made(cache=Kernel.are_kept)
            except (RuntimeError, OSError) as error:  # neither the source's directory nor a home can be written to
                if Kernel.are_kept:
                    log.warning(
                        "each process has to compile for itself, and takes longer to begin: %s; set NUMBA_CACHE_DIR to "
                        "a directory that it may write to",
                        error,
                    )
                Kernel.are_kept = False
                self._compiled = self._made(cache=False)
        return self._compiled

    def _made(self, *, cache: bool) -> Callable[Parameters, Result]:
        import numba

        made: Callable[Parameters, Result] = numba.njit(self._signature, cache=cache, nogil=self._nogil)(self._function)
        return made

    def _resolve(self) -> None:
        """Numba takes a function's globals as they are: those that are kernels have to be numba's own."""
        names = self._function.__globals__
        for name in self._function.__code__.co_names:
            if isinstance(called := names.get(name), Kernel):
                names[name] = called.compile()


def kernel(
    signature: str | None = None, *, nogil: bool = False
) -> Callable[[Callable[Parameters, Result]], Kernel[Parameters, Result]]:
    """Make a function a ``Kernel``; ``nogil``: others may run meanwhile."""
    return lambda function: Kernel(function, signature, nogil=nogil)


def compile_all() -> None:
    """Have every kernel compiled that has been imported: for processes that must not wait for it later."""
    for each in _KERNELS:
        each.compile()
