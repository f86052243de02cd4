"""What the oracles answered, as anybody between them and their clients could have read it.

The tap reads the frames on the wire, not the minds of either end: which timestamps an oracle gave away, and which
commits it called committed, holds whatever the client made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.kernel import Kernel
from tests.simulation.network import Endpoint
from tests.simulation.timestamps import shown
from wire import (
    BeginReply,
    CommitReply,
    CommitRequest,
    FrameDecoder,
    Message,
    OutcomeReply,
    decode,
)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that left an oracle."""

    moment: int
    process: str
    request: Message | None
    message: Message


class Wiretap:
    """Listens to every connection of the room."""

    def __init__(self, kernel: Kernel) -> None:
        self.replies: list[Reply] = []
        self._kernel = kernel
        self._decoders: dict[Endpoint, FrameDecoder] = {}
        self._requests: dict[tuple[int, int], Message] = {}

    def hear(self, endpoint: Endpoint, data: bytes) -> None:
        """Bytes leave an endpoint."""
        decoder = self._decoders.setdefault(endpoint, FrameDecoder())
        for frame in decoder.feed(data):
            message = decode(frame)
            place = endpoint.number, frame.request_id
            if endpoint.is_client:
                self._requests[place] = message
            else:
                request = self._requests.pop(place, None)
                self.replies.append(Reply(self._kernel.moment(), endpoint.process.name, request, message))
            if self._kernel.story.is_told:
                self._kernel.tell(f"→ {endpoint.peer.process}: {described(message)}")


def commits_in(reply: Reply) -> Iterator[tuple[int, int]]:
    """The transactions that an answer calls committed, with their commit timestamps."""
    message, request = reply.message, reply.request
    starts = getattr(request, "start_timestamps", ())
    if isinstance(message, CommitReply | OutcomeReply):
        for start, commit in zip(starts, message.commit_timestamps, strict=True):
            if commit:
                yield int(start), int(commit)


def described(message: Message) -> str:
    """A message in the story."""
    match message:
        case BeginReply():
            first = shown(message.first_start_timestamp)
            return f"begun {first} ×{message.count}, snapshot {shown(message.snapshot)}, epoch {shown(message.epoch)}"
        case CommitRequest():
            starts = ", ".join(shown(int(each)) for each in message.start_timestamps)
            return f"commit {starts}, snapshot {shown(int(message.snapshots[0]))}, {message.cells.size} cells"
        case CommitReply():
            times = ", ".join(shown(int(each)) if each else "not" for each in message.commit_timestamps)
            return f"committed {times}, reason {[int(each) for each in message.reasons]}"
        case OutcomeReply():
            times = ", ".join(shown(int(each)) if each else "none" for each in message.commit_timestamps)
            return f"outcome {[int(each) for each in message.statuses]}, committed {times}"
        case _:
            starts = ", ".join(shown(int(each)) for each in getattr(message, "start_timestamps", ()))
            address = getattr(message, "primary_address", "")
            return " ".join(part for part in (type(message).__name__, starts, address) if part)
