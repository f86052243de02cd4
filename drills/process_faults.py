"""Faults of oracle processes: killed, stopped, asked to go; once, or ten times in a row."""

from __future__ import annotations

import signal
import subprocess
from typing import ClassVar, Final

from drills.children import python
from drills.errors import ChildFailed
from drills.fault import FAILOVER_SECONDS_MAX, Fault, Recovery
from drills.proxy import Mode
from drills.waiting import wait_until

FLUSH_SECONDS_MAX: Final = 20.0
"""How long it may take until the primary writes to the commit table."""
DRAIN_SECONDS_MAX: Final = 20.0
"""How long what a proxy held may take to reach its service."""


class Kill(Fault):
    """SIGKILL."""

    name = "kill"
    sentence = "the primary is killed with SIGKILL; a fresh standby takes its place"

    def inflict(self) -> None:
        """See ``Fault``."""
        self.victim.kill()

    def heal(self) -> None:
        """See ``Fault``."""
        self.victim.start()


class Terminate(Kill):
    """SIGTERM."""

    name = "terminate"
    sentence = "the primary is shut down with SIGTERM, as for an upgrade; a fresh standby takes its place"

    def inflict(self) -> None:
        """See ``Fault``."""
        self.victim.end()


class HandOver(Fault):
    """``pythia tso handover``."""

    name = "handover"
    sentence = "the primary is told to hand over: it finishes what it has begun, and a standby takes over"

    def inflict(self) -> None:
        """See ``Fault``."""
        settings = self._installation.settings
        command = python("tso", "handover", "--zookeeper", settings.zookeeper, "--root", settings.root)
        try:
            subprocess.run(command, capture_output=True, text=True, timeout=FAILOVER_SECONDS_MAX, check=True)
        except subprocess.TimeoutExpired as error:
            raise ChildFailed(f"pythia tso handover did not end within {FAILOVER_SECONDS_MAX:.0f} s") from error
        except subprocess.CalledProcessError as error:
            raise ChildFailed(f"pythia tso handover failed: {error.stderr or error.stdout}") from error

    def heal(self) -> None:
        """See ``Fault``."""


class Stop(Fault):
    """SIGSTOP, and SIGCONT after the lease."""

    name = "stop"
    sentence = "the primary is stopped (SIGSTOP) until another has taken over, and then goes on (SIGCONT)"
    hold_ms = (0, 500)

    def inflict(self) -> None:
        """See ``Fault``."""
        self.victim.send_signal(signal.SIGSTOP)

    def heal(self) -> None:
        """See ``Fault``."""
        self.victim.send_signal(signal.SIGCONT)


class StopInFlush(Stop):
    """SIGSTOP while commits are on their way to the commit table."""

    name = "stop-in-flush"
    sentence = (
        "the primary is stopped while a write to the commit table is under way; the write arrives after another "
        "has taken over, and only then does the stopped one go on"
    )

    def inflict(self) -> None:
        """See ``Fault``."""
        hbase = self.victim.hbase
        hbase.set_mode(Mode.BLACK_HOLE)
        wait_until(lambda: hbase.held_bytes > 0, "the primary to write to the commit table", FLUSH_SECONDS_MAX)
        super().inflict()

    def heal(self) -> None:
        """See ``Fault``."""
        hbase = self.victim.hbase
        hbase.set_mode(Mode.PASS)
        wait_until(lambda: hbase.held_bytes == 0, "the late write to reach HBase", DRAIN_SECONDS_MAX)
        super().heal()


class ManyKills(Fault):
    """Ten failovers in a row."""

    name = "ten-failovers"
    kills: ClassVar[int] = 10
    sentence = "ten primaries in a row are killed, each as soon as it has taken over"
    recovery = Recovery.AT_ONCE

    def inflict(self) -> None:
        """See ``Fault``."""
        victim = self.victim
        for _ in range(self.kills):
            epoch = victim.epoch or 0
            victim.kill()
            victim.start()
            victim = self._installation.await_primary(epoch, FAILOVER_SECONDS_MAX)

    def heal(self) -> None:
        """See ``Fault``."""
