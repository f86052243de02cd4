"""What HBase's shell is told, to split a table."""

from __future__ import annotations

from client.tables.splits import shell_commands


def test_a_key_is_written_so_that_the_shell_takes_it_for_these_bytes() -> None:
    assert shell_commands("t", [b"\x80\x00", b'"#{']) == [
        "split 't', \"\\x80\\x00\"",
        "split 't', \"\\x22\\x23\\x7B\"",
    ]
