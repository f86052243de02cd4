"""numba, and what it is told: imported once a kernel is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from kernels.fingerprints import fingerprint
from kernels.keeping import KeptKernel


def compiled(function: Callable[..., Any], signature: str | None, *, nogil: bool, inline: bool) -> Any:
    """What numba makes of a function (a ``Dispatcher``), for the types of ``signature`` at once.

    Raises ``Untellable``, and what numba raises of functions that it cannot compile.
    """
    dispatcher: Any = numba.njit(nogil=nogil, forceinline=inline)(function)
    said = fingerprint(function, signature, nogil, inline)
    source = Path(function.__code__.co_filename)
    # By this attribute numba's own cache is put there, too (Dispatcher.enable_caching).
    dispatcher._cache = KeptKernel(f"{function.__module__}.{function.__qualname__}", source, said)
    if signature is not None:
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher
