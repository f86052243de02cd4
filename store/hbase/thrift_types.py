"""The Thrift types of HBase's gateway, which exist as a module only once happybase has been imported."""

from __future__ import annotations

from typing import Any, Final

import happybase  # noqa: F401 — loads the module Hbase_thrift
from Hbase_thrift import AlreadyExists, BatchMutation, ColumnDescriptor, Hbase, IllegalArgument, Mutation, TScan
from Hbase_thrift import IOError as GatewayIOError
from thriftpy2.protocol import TBinaryProtocol as UntypedBinaryProtocol
from thriftpy2.transport import TBufferedTransport as UntypedBufferedTransport
from thriftpy2.transport import TFramedTransport as UntypedFramedTransport
from thriftpy2.transport import TSocket as UntypedSocket

TBinaryProtocol: Final[Any] = UntypedBinaryProtocol
TBufferedTransport: Final[Any] = UntypedBufferedTransport
TFramedTransport: Final[Any] = UntypedFramedTransport
TSocket: Final[Any] = UntypedSocket

__all__ = [
    "AlreadyExists",
    "BatchMutation",
    "ColumnDescriptor",
    "GatewayIOError",
    "Hbase",
    "IllegalArgument",
    "Mutation",
    "TBinaryProtocol",
    "TBufferedTransport",
    "TFramedTransport",
    "TScan",
    "TSocket",
]
