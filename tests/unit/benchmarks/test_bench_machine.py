"""What is told of the machine beside a measurement."""

from __future__ import annotations

from pathlib import Path

from benchmarks.machine import describe_machine, halt_poll_microseconds


def test_the_machine_is_described_without_its_name() -> None:
    described = describe_machine()
    assert described["cores"]
    assert described["memory_mebibytes"]
    assert "halt_poll_microseconds" in described


def test_how_long_a_core_polls_is_told_where_the_system_says_it(tmp_path: Path) -> None:
    parameter = tmp_path / "guest_halt_poll_ns"
    assert halt_poll_microseconds(parameter) is None
    parameter.write_text("200000\n")
    assert halt_poll_microseconds(parameter) == 200
    parameter.write_text("often")
    assert halt_poll_microseconds(parameter) is None
