"""The frames that client and oracle exchange: columns over many transactions, pure encoding and decoding."""

from wire.commits import CommitReply, CommitRequest, Reason
from wire.details import DetailsReply, DetailsRequest
from wire.errors import ProtocolError
from wire.frames import FRAME_BYTES_MAX, HEADER_BYTES, VERSION, VERSION_LOWEST, Frame, FrameDecoder, Kind, encode_frame
from wire.greeting import Greeting
from wire.hello import HELLO_BYTES_MAX, HelloReply, HelloRequest, NotAllowed, NotAllowedCode, common_version
from wire.hindrance import HindranceReply, HindranceRequest
from wire.large_commits import PART_CELLS_MAX, LargeCommitRequest, WriteSetPart, WriteSetTaken
from wire.message import Message
from wire.messages import (
    HEARTBEAT_TRANSACTIONS_MAX,
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
from wire.operating import LIVES_TRANSACTIONS_MAX, DrainReply, DrainRequest, Life, LivesReply, LivesRequest
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
    "HEARTBEAT_TRANSACTIONS_MAX",
    "HELLO_BYTES_MAX",
    "LIVES_TRANSACTIONS_MAX",
    "PART_CELLS_MAX",
    "VERSION",
    "VERSION_LOWEST",
    "AbortRequest",
    "BadRequest",
    "BeginReply",
    "BeginRequest",
    "CommitReply",
    "CommitRequest",
    "DetailsReply",
    "DetailsRequest",
    "DrainReply",
    "DrainRequest",
    "Frame",
    "FrameDecoder",
    "Greeting",
    "HandoverReply",
    "HandoverRequest",
    "HeartbeatReply",
    "HeartbeatRequest",
    "HelloReply",
    "HelloRequest",
    "HindranceReply",
    "HindranceRequest",
    "Kind",
    "LargeCommitRequest",
    "Life",
    "LivesReply",
    "LivesRequest",
    "Message",
    "MetricsReply",
    "MetricsRequest",
    "NotAllowed",
    "NotAllowedCode",
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
    "common_version",
    "decode",
    "encode",
    "encode_frame",
]
