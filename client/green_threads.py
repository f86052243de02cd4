"""gevent and eventlet, which put coroutines of theirs in the place of Python's threads (*green threads*).

The library has threads of its own, which wait in C: for the oracle, in libuv. As a green thread one of them would stop
all others for good, and where the sockets alone are replaced, those who wait for a lock would stop whom they wait for.
"""

from __future__ import annotations

import sys
from typing import Final

from client.errors import InvalidRequest

_PATCHERS: Final = (
    ("gevent.monkey", "is_module_patched", "threading"),
    ("eventlet.patcher", "is_monkey_patched", "thread"),
)
"""The module that replaces others, its function that says whether it has, and what it calls threads."""


def require_threads() -> None:
    """Raise ``InvalidRequest`` where Python's threads or sockets were replaced in this process."""
    for module, question, threads in _PATCHERS:
        is_replaced = getattr(sys.modules.get(module), question, None)
        if is_replaced is not None and (is_replaced(threads) or is_replaced("socket")):
            library = module.partition(".")[0]
            raise InvalidRequest(
                f"{library} has replaced Python's threads or sockets in this process (monkey patching), and the "
                "library's own thread would stop all others: do without (gunicorn has gthread and uvicorn workers), "
                "have the transactions in a process of their own, or reach them by REST"
            )
