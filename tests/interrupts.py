"""A signal's handler that raises, as Ctrl-C does, at any moment at which Python lets it run."""

from __future__ import annotations

import dis
import gc
import inspect
import sys
from collections.abc import Callable
from types import FrameType

_SWALLOWED = ("_weakrefset.py", "weakref.py")
"""What is raised in their callbacks goes nowhere."""
_LOAD_SPECIAL = dis.opmap.get("LOAD_SPECIAL")
"""What comes before the call that enters a block of ``with``, from 3.14 on; before that it was no call."""


class Interrupt(BaseException):
    """What the handler raises."""


def interrupted_at(moment: int, act: Callable[[], object]) -> bool:
    """Do it, and raise at the ``moment``-th time that a handler could run; whether it came to that.

    Handlers run where a function of Python's begins, and where one of C has returned to it. (In loops, too. Not where a
    generator goes on with an error. Nor where a block of ``with`` is entered, but for a flaw of Python 3.14, which
    leaves any lock in the process held then: python/cpython#148874.) The collector of garbage rests meanwhile: what is
    raised in what it calls is swallowed, and its moments are not those of what is done.
    """
    seen = 0

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal seen
        code = frame.f_code
        begins = event == "call" and not code.co_flags & inspect.CO_GENERATOR
        returns = event == "c_return" and not _enters_a_block(frame)
        if (begins or returns) and not code.co_filename.endswith(_SWALLOWED):
            seen += 1
            if seen == moment:
                raise Interrupt

    collects = gc.isenabled()
    gc.disable()
    sys.setprofile(look)
    try:
        act()
    except Interrupt:
        return True
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()
    return False


def _enters_a_block(frame: FrameType) -> bool:
    return frame.f_code.co_code[frame.f_lasti - 2] == _LOAD_SPECIAL
