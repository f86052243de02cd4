"""The Thrift types of HBase's gateway, which exist as a module only once happybase has been imported."""

from __future__ import annotations

import happybase
from Hbase_thrift import AlreadyExists, BatchMutation, ColumnDescriptor, IllegalArgument, Mutation, TScan
from Hbase_thrift import IOError as GatewayIOError

Connection = happybase.Connection

__all__ = [
    "AlreadyExists",
    "BatchMutation",
    "ColumnDescriptor",
    "Connection",
    "GatewayIOError",
    "IllegalArgument",
    "Mutation",
    "TScan",
]
