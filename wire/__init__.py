"""The frames that client and oracle exchange: columns over many transactions, pure encoding and decoding."""

from wire.commits import CommitReply, CommitRequest, Reason
from wire.details import DetailsReply, DetailsRequest
from wire.errors import ProtocolError
from wire.frames import FRAME_BYTES_MAX, HEADER_BYTES, VERSION, Frame, FrameDecoder, Kind, encode_frame
from wire.large_commits import PART_CELLS_MAX, LargeCommitRequest, WriteSetPart, WriteSetTaken
from wire.message import Message
from wire.messages import (
    AbortRequest,
    BeginReply,
    BeginRequest,
    HeartbeatReply,
    HeartbeatRequest,
    OutcomeReply,
    OutcomeRequest,
    OutcomeStatus,
    decode,
    encode,
)
from wire.metrics import MetricsReply, MetricsRequest
from wire.service import (
    BadRequest,
    HandoverReply,
    HandoverRequest,
    NotPrimary,
    Overloaded,
    Role,
    StatusReply,
    StatusRequest,
)

__all__ = [
    "FRAME_BYTES_MAX",
    "HEADER_BYTES",
    "PART_CELLS_MAX",
    "VERSION",
    "AbortRequest",
    "BadRequest",
    "BeginReply",
    "BeginRequest",
    "CommitReply",
    "CommitRequest",
    "DetailsReply",
    "DetailsRequest",
    "Frame",
    "FrameDecoder",
    "HandoverReply",
    "HandoverRequest",
    "HeartbeatReply",
    "HeartbeatRequest",
    "Kind",
    "LargeCommitRequest",
    "Message",
    "MetricsReply",
    "MetricsRequest",
    "NotPrimary",
    "OutcomeReply",
    "OutcomeRequest",
    "OutcomeStatus",
    "Overloaded",
    "ProtocolError",
    "Reason",
    "Role",
    "StatusReply",
    "StatusRequest",
    "WriteSetPart",
    "WriteSetTaken",
    "decode",
    "encode",
    "encode_frame",
]
