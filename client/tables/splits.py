"""How HBase's shell is told to split a table that is there already, which no Thrift gateway can. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def shell_commands(table: str, cuts: Sequence[bytes]) -> list[str]:
    """What splits a table in HBase's shell, a region after the other."""
    return [f"split '{table}', \"{_escaped(cut)}\"" for cut in cuts]


def _escaped(key: bytes) -> str:
    """For a text in double quotes of HBase's shell, in which other bytes than these could mean something."""
    return "".join(f"\\x{byte:02X}" for byte in key)
