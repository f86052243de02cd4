"""Why a setting may be no larger, where several sections say the same (``Setting.because``). Pure."""

from __future__ import annotations

from typing import Final

CONNECTION: Final = "each needs a file descriptor and memory"
MEMORY: Final = "more would not fit this process's memory"
THREAD: Final = "each is a thread, and a connection to the gateway"
WAIT: Final = "whoever waits for that has long given up"
