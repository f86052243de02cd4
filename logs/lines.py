"""What an oracle process and the REST process beside it log: lines for people or JSON for machines, each with the role
and the epoch of its moment.

Invariant: one record is one line, whatever is in it, so that nothing a client sends can look like a line of its own.
Records never hold settings that are secret: those are shown as such before they come here. Whoever makes a process log
the same again and again, such as by wrong tokens, fills no disk with it.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from logs.repetition import Repetition

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")

_TEXT = "%(asctime)s %(levelname)s %(role)s %(epoch)s %(threadName)s %(name)s: %(message)s"


class Standing:
    """Role and epoch of the process, as its log lines have them. Set by one thread, read by all."""

    def __init__(self, role: str = "standby") -> None:
        self._now = (role, 0)

    def set(self, role: str, epoch: int) -> None:
        """From now on."""
        self._now = (role, epoch)

    def filter(self, record: logging.LogRecord) -> bool:
        """Put role and epoch into a record: a filter of ``logging``, which lets everything pass."""
        record.role, record.epoch = self._now
        return True


class TextFormatter(logging.Formatter):
    """Lines for people."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def format(self, record: logging.LogRecord) -> str:
        """One line; line breaks within it are shown as such."""
        return "\\n".join(super().format(record).splitlines())


class JsonFormatter(logging.Formatter):
    """One object a line: ``time`` (UTC, ISO 8601), ``level``, ``role``, ``epoch``, ``thread``, ``logger``, ``message``,
    and ``exception`` where there is one.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "role": record.__dict__["role"],
            "epoch": record.__dict__["epoch"],
            "thread": record.threadName,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure_logs(level: str, log_format: str, standing: Standing) -> None:
    """Log to standard error from now on: ``level`` one of ``LEVELS``, ``log_format`` one of ``FORMATS``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(Repetition().filter)
    handler.addFilter(standing.filter)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("kazoo").setLevel(logging.WARNING)
