"""What can be wrong with a backup itself."""

from __future__ import annotations

from client.errors import InvalidRequest


class DamagedBackup(InvalidRequest):
    """A backup, or a part of it, is not what was written; the text names the file."""
