"""The numbers of Thrift's binary protocol, and the calls that are made without Thrift's own library.

Apart from encoder and reader, which share them, so that whoever reads an answer need not load the compiled encoder.
"""

from __future__ import annotations

MUTATE_ROWS = b"mutateRowsTs"
MUTATE_ROW = b"mutateRowTs"
IS_TABLE_ENABLED = b"isTableEnabled"
SCANNER_GET_LIST = b"scannerGetList"
GET_ROWS = b"getRowsWithColumnsTs"

VERSION = 0x8001_0000
"""With the kind of the message in its low byte, a strict message starts with it."""
CALL, REPLY, EXCEPTION = 1, 2, 3

STOP, BOOL, BYTE, DOUBLE, INT16, INT32, INT64, STRING, STRUCT, MAP, LIST = 0, 2, 3, 4, 6, 8, 10, 11, 12, 13, 15
"""Types of fields; ``STOP`` ends a struct."""

NUMBER_BYTES = {BOOL: 1, BYTE: 1, DOUBLE: 8, INT16: 2, INT32: 4, INT64: 8}
"""The types whose values are all of one size."""

COUNT_BYTES = 4
"""The length of a string, the number of a list's items."""
FRAME_BYTES = 4
"""The length before each message of a framed transport."""
SEQUENCE_MAX = 2**31 - 1
