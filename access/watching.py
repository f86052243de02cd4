"""The file of tokens as it is now: read again when it has changed, and kept as it was where the new one is broken.

The invariant: from the first good file on there are always tokens in force; a file with mistakes changes nothing, and
is told of in the log once for each time that it was written.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

from access.changes import FileChanges
from access.tokens import BadTokens, Tokens, parse

log = logging.getLogger(__name__)

FILE_BYTES_MAX: Final = 2**20


class TokensFile:
    """One file. ``now_s`` is a monotonic clock's.

    Raises ``BadTokens`` or ``OSError`` where it cannot be used at first.
    """

    def __init__(self, path: str, now_s: float) -> None:
        self._path = path
        self._changes = FileChanges([path], now_s)
        self.current = read_tokens(path)
        _warn_of_writers(path)

    def refresh(self, now_s: float) -> Tokens:
        """The tokens in force; now and then it is looked whether the file has changed. Raises nothing."""
        if self._changes.to_read(now_s):
            self._read_again()
        return self.current

    def _read_again(self) -> None:
        """What cannot be read now is tried again at each look: rights, or descriptors, may come back by themselves."""
        try:
            self.current = read_tokens(self._path)
            _warn_of_writers(self._path)
        except BadTokens as error:
            log.error("tokens file %s: the tokens that were in force before stay so: %s", self._path, str(error))
        except OSError as error:
            if self._changes.failed(str(error)):
                log.error("tokens file %s: %s: the tokens in force stay so", self._path, error.strerror or error)
        else:
            log.warning("tokens file %s has changed: %d tokens are in force", self._path, len(self.current.by_name))


def read_tokens(path: str) -> Tokens:
    """The tokens of a file. Raises ``BadTokens`` with every mistake, ``OSError`` where it cannot be read."""
    with Path(path).open("rb") as file:
        raw = file.read(FILE_BYTES_MAX + 1)
    if len(raw) > FILE_BYTES_MAX:
        raise BadTokens([f"it is larger than {FILE_BYTES_MAX} bytes: that is no file of tokens"])
    try:
        return parse(raw.decode("utf-8-sig"))  # editors on Windows begin it with a mark
    except UnicodeDecodeError as error:
        raise BadTokens([f"it is not UTF-8: {error.reason} at byte {error.start}"]) from error


def _warn_of_writers(path: str) -> None:
    if os.stat(path).st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        log.warning("others than its owner may write the tokens file %s, and let themselves in: chmod 600", path)
