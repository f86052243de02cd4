"""Asking the servers whether they serve: ZooKeeper by its ``srvr`` word, HBase by a put and a get through the gateway.

Invariant: ``prove`` leaves no table behind when it returns, and removes those of a proof that was cut short before.
"""

from __future__ import annotations

import socket
import uuid

import happybase
from thriftpy2.thrift import TException

from devcluster.settings import LOOPBACK

ASK_TIMEOUT_SECONDS = 2.0
PROVE_TIMEOUT_SECONDS = 30.0
_ANSWER_BYTES_MAX = 4_096
_PROOF_PREFIX = b"pythia_ready_"
_COLUMN = b"proof:value"


def zookeeper_answers(port: int) -> bool:
    """Whether a ZooKeeper serves requests on ``port`` of loopback."""
    try:
        with socket.create_connection((LOOPBACK, port), ASK_TIMEOUT_SECONDS) as connection:
            connection.settimeout(ASK_TIMEOUT_SECONDS)
            connection.sendall(b"srvr")
            answer = b""
            while len(answer) < _ANSWER_BYTES_MAX and (part := connection.recv(_ANSWER_BYTES_MAX)):
                answer += part
    except OSError:
        return False
    return b"Mode: " in answer


def hbase_answers(port: int) -> bool:
    """Whether HBase's master answers through the Thrift gateway on ``port`` of loopback."""
    try:
        connection = _connect(port, ASK_TIMEOUT_SECONDS)
        try:
            connection.tables()
        finally:
            connection.close()
    except (OSError, TException):
        return False
    return True


def listens(port: int, timeout_seconds: float = ASK_TIMEOUT_SECONDS) -> bool:
    """Whether a server listens on ``port`` of loopback; HBase's gateways do once they can reach HBase."""
    try:
        socket.create_connection((LOOPBACK, port), timeout_seconds).close()
    except OSError:
        return False
    return True


def prove(port: int) -> bool:
    """Whether a put into a table of our own, and a get of it, went through the gateway on ``port`` of loopback."""
    try:
        connection = _connect(port, PROVE_TIMEOUT_SECONDS)
        try:
            return _put_and_get(connection)
        finally:
            connection.close()
    except (OSError, TException):
        return False


def _put_and_get(connection: happybase.Connection) -> bool:
    for left_over in connection.tables():
        if left_over.startswith(_PROOF_PREFIX):
            connection.delete_table(left_over, disable=connection.is_table_enabled(left_over))
    name = _PROOF_PREFIX + uuid.uuid4().hex.encode()
    connection.create_table(name, {"proof": {"max_versions": 1}})
    try:
        table = connection.table(name)
        table.put(b"row", {_COLUMN: name})
        return bool(table.row(b"row", columns=[_COLUMN]) == {_COLUMN: name})
    finally:
        connection.delete_table(name, disable=True)


def _connect(port: int, timeout_seconds: float) -> happybase.Connection:
    return happybase.Connection(LOOPBACK, port, timeout=int(timeout_seconds * 1_000))
