"""A gateway of our own that speaks real Thrift, and fails as told.

Request by request it can hang up before it acts, after, or in the middle of its answer, fall silent, talk rubbish,
answer another request, answer with a length below zero or byte by byte, refuse it in Thrift's own name, raise a gateway
error, or answer no sooner than an event is set.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import happybase  # noqa: F401 — loads the module Hbase_thrift
from Hbase_thrift import Hbase, TCell, TRegionInfo, TRowResult
from thriftpy2.protocol import TBinaryProtocol
from thriftpy2.thrift import TApplicationException, TProcessor
from thriftpy2.transport import TBufferedTransport, TFramedTransport, TMemoryBuffer, TSocket, TTransportException

from store.hbase.addresses import Address
from store.hbase.thrift_types import BatchMutation, IllegalArgument, Mutation, TScan

HANG_UP, HANG_UP_AFTER, SILENCE, RUBBISH = "hang up", "hang up after", "silence", "rubbish"
CUT, WRONG_NUMBER = "hang up in the middle of the answer", "answer another request"
BELOW_ZERO, BYTE_BY_BYTE = "a length below zero", "a byte every tenth of a second"
Fate = str | Exception | threading.Event | None

_socket: Any = TSocket
_buffered: Any = TBufferedTransport
_framed: Any = TFramedTransport
_memory: Any = TMemoryBuffer
_protocol: Any = TBinaryProtocol


class Methods:
    """The gateway's methods; ``asked`` is what reached them, ``rows_asked`` for how many rows at a time."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.written: list[tuple[bytes, dict[bytes, dict[bytes, bytes]], int]] = []
        self.tables: dict[bytes, list[bytes]] = {}
        self.rows_asked: list[int] = []
        self.scanned: list[tuple[bytes, bytes]] = []
        self.scan_takes_s = 0.0
        self.value_of: Callable[[bytes], bytes] = lambda row: row
        self.regions: deque[list[tuple[bytes, bytes]]] = deque()
        self._scanners: dict[int, Iterator[bytes]] = {}
        self._numbers = itertools.count()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(*_: object) -> object:
            self.asked.append(name)
            return {"checkAndPut": True}.get(name, [])

        return method

    def getTableRegions(self, *_: object) -> list[TRegionInfo]:  # noqa: N802
        """The next of ``regions``; the last one stays. Without any there is one region, of which nothing is noted."""
        if not self.regions:
            return [TRegionInfo(startKey=b"", endKey=b"", id=0, name=b"n", version=1)]
        self.asked.append("getTableRegions")
        named = self.regions.popleft() if len(self.regions) > 1 else self.regions[0]
        return [TRegionInfo(startKey=start, endKey=stop, id=0, name=b"n", version=1) for start, stop in named]

    def getRowWithColumnsTs(self, *_: object) -> list[TRowResult]:  # noqa: N802
        self.asked.append("get")
        return [TRowResult(row=b"r", columns={b"f:a": TCell(value=b"1", timestamp=5)})]

    def getRowsWithColumnsTs(self, table: bytes, rows: list[bytes], *_: object) -> list[TRowResult]:  # noqa: N802
        self.rows_asked.append(len(rows))
        return [self._result(row) for row in rows if row in self.tables[table]]

    def mutateRowTs(  # noqa: N802
        self, table: bytes, row: bytes, mutations: list[Mutation], timestamp: int, *_: object
    ) -> None:
        self.asked.append("mutateRowTs")
        self.written.append((table, {row: {each.column: each.value for each in mutations}}, timestamp))

    def mutateRowsTs(self, table: bytes, batches: list[BatchMutation], timestamp: int, *_: object) -> None:  # noqa: N802
        self.asked.append("mutateRowsTs")
        rows = {batch.row: {each.column: each.value for each in batch.mutations} for batch in batches}
        self.written.append((table, rows, timestamp))

    def scannerOpenWithScan(self, table: bytes, scan: TScan, *_: object) -> int:  # noqa: N802
        number = next(self._numbers)
        self.scanned.append((scan.startRow, scan.stopRow))
        rows = [row for row in self.tables[table] if row >= scan.startRow and (not scan.stopRow or row < scan.stopRow)]
        self._scanners[number] = iter(rows)
        return number

    def scannerGetList(self, number: int, count: int) -> list[TRowResult]:  # noqa: N802
        if number not in self._scanners:
            raise IllegalArgument(message=b"scanner ID is invalid")
        self.rows_asked.append(count)
        time.sleep(self.scan_takes_s)
        return [self._result(row) for row in itertools.islice(self._scanners[number], count)]

    def scannerClose(self, number: int) -> None:  # noqa: N802
        del self._scanners[number]

    def _result(self, row: bytes) -> TRowResult:
        return TRowResult(row=row, columns={b"f:a": TCell(value=self.value_of(row), timestamp=5)})

    def forget_scanners(self) -> None:
        self._scanners.clear()

    def open_scanners(self) -> int:
        return len(self._scanners)


class FakeGateway:
    """Serves ``methods`` on a port of 127.0.0.1 until stopped; ``start`` serves the same port anew."""

    def __init__(self, *, framed: bool = False, service: Any = Hbase) -> None:
        self._transport = _framed if framed else _buffered
        self._service = service
        self.methods: Any = Methods()
        self.fates: deque[Fate] = deque()
        self.connections = 0
        self.port = 0
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        self.start()

    @property
    def address(self) -> str:
        return str(Address("127.0.0.1", self.port, self._transport is _framed))

    def start(self) -> None:
        self._stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        self._run(self._accept, self._listener)

    def stop(self) -> None:
        self._stopped.set()
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(timeout=30)
        self._threads.clear()
        self._sockets.clear()

    def restart(self) -> None:
        """Stop and start with nothing remembered; scanners are numbered from 0 again."""
        tables = self.methods.tables
        self.stop()
        self.methods = Methods()
        self.methods.tables = tables
        self.start()

    def _run(self, work: Callable[[socket.socket], None], argument: socket.socket) -> None:
        thread = threading.Thread(target=work, args=(argument,), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = listener.accept()
                self.connections += 1
                self._sockets.append(accepted)
                self._run(self._serve, accepted)

    def _serve(self, accepted: socket.socket) -> None:
        protocol = _protocol(self._transport(_socket(sock=accepted)), decode_response=False)
        processor = TProcessor(self._service, self.methods)
        with contextlib.suppress(OSError, TTransportException):
            while self._answer(processor, protocol, accepted):
                pass
        accepted.close()

    def _send_oddly(self, accepted: socket.socket, answer: bytes, fate: Fate) -> None:
        if fate == CUT:
            accepted.sendall(answer[:-1])
        elif fate == BELOW_ZERO:
            head_bytes = 12 + struct.unpack_from(">i", answer, 4)[0]
            accepted.sendall(answer[:head_bytes] + struct.pack(">bhi", 11, 9, -1) + b"\x00")
        else:
            for at in range(len(answer)):
                accepted.sendall(answer[at : at + 1])
                if self._stopped.wait(timeout=0.1):
                    return

    def _answer(self, processor: TProcessor, protocol: Any, accepted: socket.socket) -> bool:
        name, number, result, call = processor.process_in(protocol)
        is_aside = name == "getTableRegions" and not self.methods.regions  # what every scan asks first
        fate = self.fates.popleft() if self.fates and not is_aside else None
        if fate == HANG_UP or call is None:
            return False
        if fate == SILENCE:
            self._stopped.wait(timeout=60)
            return False
        if fate == RUBBISH:
            accepted.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            return False
        if isinstance(fate, threading.Event):
            fate.wait(timeout=60)
        if isinstance(fate, TApplicationException):
            processor.send_exception(protocol, name, fate, number)
            return True
        try:
            if isinstance(fate, Exception):
                self.methods.asked.append(name)
                raise fate
            result.success = call()
        except ConnectionError:  # the gateway breaks off in the middle of its work
            return False
        except Exception as error:
            processor.handle_exception(error, result)
        if fate == HANG_UP_AFTER:
            return False
        if fate in (CUT, BELOW_ZERO, BYTE_BY_BYTE):
            whole = _memory()
            processor.send_result(_protocol(whole), name, result, number)
            self._send_oddly(accepted, whole.getvalue(), fate)
            return False
        processor.send_result(protocol, name, result, number + (fate == WRONG_NUMBER))
        return True
