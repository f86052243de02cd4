"""The driver's side of the conversation: commands as it reads them, and its answers as windows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.sides import Latency, SideError, Window


def run_command(in_flight: int, cells: int, connections: int, seconds: float) -> str:
    """The line that asks for one window."""
    return f"run {in_flight} {cells} {connections} {seconds:.3f}"


def parse_answer(line: str, oracle_cpu_seconds: float) -> Window:
    """The window in the driver's answer; what the server's processes took is not the driver's to know.

    Raises:
        SideError: it tells of an error, or is no answer.
    """
    try:
        fields = json.loads(line)
        if "error" in fields:
            raise SideError(f"a transaction of the peer failed: {fields['error']}")
        return Window(
            transactions=int(fields["transactions"]),
            aborted=int(fields["aborted"]),
            seconds=float(fields["seconds"]),
            whole=_latency(fields["whole"]),
            begin=_latency(fields["begin"]),
            commit=_latency(fields["commit"]),
            client_cpu_seconds=float(fields["cpu_seconds"]),
            oracle_cpu_seconds=oracle_cpu_seconds,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise SideError(f"the peer's driver answered with something else than a window: {line[:200]!r}") from error


def _latency(fields: Mapping[str, Any]) -> Latency:
    return Latency(float(fields["p50_us"]), float(fields["p99_us"]))
