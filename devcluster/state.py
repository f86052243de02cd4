"""The state file: which processes and ports make up the cluster in a directory.

Invariant: the file is replaced as a whole or not at all, and is written before the next process is started.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from devcluster.configuration import PARTS, Part
from devcluster.errors import StateDamaged
from devcluster.processes import ProcessRecord

STATE_NAME = "cluster.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What was started in a directory, and how, so that a part can be started again in the same way.

    ``proved``: a put and a get went through since; a start that was cut off before leaves it false.
    """

    zookeeper_port: int
    thrift_port: int
    java: str
    jars: tuple[str, ...]
    heap_mebibytes: dict[Part, int]
    ready_timeout_seconds: float
    stop_timeout_seconds: float
    processes: dict[Part, ProcessRecord] = field(default_factory=dict)
    proved: bool = False
    thrift2_port: int | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Of which the cluster consists."""
        return tuple(part for part in PARTS if part != "gateway2" or self.thrift2_port is not None)

    def port(self, part: Part) -> int:
        """By which a part is asked."""
        ports = {"hbase": self.zookeeper_port, "gateway": self.thrift_port, "gateway2": self.thrift2_port or 0}
        return ports[part]

    def with_process(self, part: Part, record: ProcessRecord) -> ClusterState:
        """The same state with ``record`` as the process of ``part``."""
        return replace(self, processes={**self.processes, part: record})


def encode(state: ClusterState) -> str:
    """The text of the state file."""
    return json.dumps({"format": FORMAT, **asdict(state)}, indent=1) + "\n"


def decode(text: str) -> ClusterState:
    """The state in the text of a state file.

    Raises:
        StateDamaged: it is not one of this format.
    """
    try:
        fields = json.loads(text)
        if fields.pop("format") != FORMAT:
            raise ValueError("another format")
        processes = {part: ProcessRecord(**entry) for part, entry in fields.pop("processes").items()}
        state = ClusterState(processes=processes, **fields)
        return replace(state, jars=tuple(state.jars))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateDamaged(f"the state file {STATE_NAME} cannot be read ({error})") from error


def read_state(directory: Path) -> ClusterState | None:
    """The state of the cluster in ``directory``, None where nothing is recorded.

    Raises:
        StateDamaged: there is a file that cannot be read as one.
    """
    try:
        text = (directory / STATE_NAME).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    state = decode(text)
    if not set(state.processes) <= set(PARTS):
        raise StateDamaged(f"the state file {STATE_NAME} names unknown processes")
    return state


def write_state(directory: Path, state: ClusterState) -> None:
    """Replace the state file.

    Raises:
        OSError: it cannot be written.
    """
    scratch = directory / f"{STATE_NAME}.new"
    with scratch.open("w", encoding="utf-8") as file:
        file.write(encode(state))
        file.flush()
        os.fsync(file.fileno())
    os.replace(scratch, directory / STATE_NAME)
