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

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from kernels.keeping import KeptKernel

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

KERNELS: list[Any] = []
"""All whose modules have been imported."""


class Kernel(functools.partial[Result], Generic[*Arguments, Result]):
    """One function. ``signature``: numba's; ``None``: whatever types it is called with, by other kernels most of all.

    ``inline``: whether each kernel that calls it gets a copy of its own.

    It is a ``partial`` of no arguments, whose function is numba's own once that is there: a method ``__call__`` would
    take as long as a small kernel does.
    """

    def __new__(
        cls,
        function: Callable[[*Arguments], Result],
        signature: str | None = None,
        *,
        nogil: bool = False,
        inline: bool = False,
    ) -> Self:
        """One that is compiled at its first call."""
        made = super().__new__(cls, function)
        functools.update_wrapper(made, function)
        made._function = function
        made._signature = signature
        made._nogil = nogil
        made._inline = inline
        made._dispatcher = None
        made._run(made._compile_and_run)
        KERNELS.append(made)
        return made

    _function: Callable[[*Arguments], Result]
    _signature: str | None
    _nogil: bool
    _inline: bool
    _dispatcher: Any

    if TYPE_CHECKING:

        def __call__(self, *arguments: *Arguments) -> Result:
            """Run it, compiled."""

    @property
    def keeping(self) -> KeptKernel | None:
        """What was compiled, and where it is kept; ``None`` before ``compile``."""
        kept: KeptKernel | None = self._dispatcher and self._dispatcher._cache
        return kept

    def compile(self) -> Callable[[*Arguments], Result]:
        """Compile it now, or take what was compiled before; harmless to repeat, and in several threads at once."""
        if self._dispatcher is None:
            from kernels.compiling import compiled

            self._resolve()
            self._dispatcher = compiled(self._function, self._signature, nogil=self._nogil, inline=self._inline)
            self._run(self._dispatcher)
        compiled_function: Callable[[*Arguments], Result] = self._dispatcher
        return compiled_function

    def _compile_and_run(self, *arguments: *Arguments) -> Result:
        return self.compile()(*arguments)

    def _run(self, function: Callable[[*Arguments], Result]) -> None:
        """From now on."""
        self.__setstate__((function, (), {}, self.__dict__))  # type: ignore[attr-defined]  # it has, for copies

    def _resolve(self) -> None:
        """Numba takes a function's globals as they are: those that are kernels have to be numba's own."""
        names = self._function.__globals__
        for name in self._function.__code__.co_names:
            if isinstance(called := names.get(name), Kernel):
                names[name] = called.compile()


def kernel(
    signature: str | None = None, *, nogil: bool = False, inline: bool = False
) -> Callable[[Callable[[*Arguments], Result]], Kernel[*Arguments, Result]]:
    """Make a function a ``Kernel``; ``nogil``: others may run meanwhile; ``inline``: see there."""
    return lambda function: Kernel(function, signature, nogil=nogil, inline=inline)


def compile_all() -> None:
    """Have every kernel compiled that has been imported: for processes that must not wait for it later."""
    for each in KERNELS:
        each.compile()
