"""The Thrift types of HBase's gateway, which exist as a module only once happybase has been imported."""

from __future__ import annotations

from typing import Any, Final

import happybase  # noqa: F401 — loads the module Hbase_thrift
from Hbase_thrift import AlreadyExists, BatchMutation, ColumnDescriptor, Hbase, IllegalArgument, Mutation, TScan
from Hbase_thrift import IOError as GatewayIOError
from thriftpy2.protocol import TBinaryProtocol, TCompactProtocol
from thriftpy2.transport import TBufferedTransport, TFramedTransport
from thriftpy2.transport import TSocket as UntypedSocket

PROTOCOLS: Final[dict[str, Any]] = {"binary": TBinaryProtocol, "compact": TCompactProtocol}
TSocket: Final[Any] = UntypedSocket
TRANSPORTS: Final[dict[str, Any]] = {"buffered": TBufferedTransport, "framed": TFramedTransport}

__all__ = [
    "PROTOCOLS",
    "TRANSPORTS",
    "AlreadyExists",
    "BatchMutation",
    "ColumnDescriptor",
    "GatewayIOError",
    "Hbase",
    "IllegalArgument",
    "Mutation",
    "TScan",
    "TSocket",
]
