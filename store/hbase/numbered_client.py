"""Thrift's client for the gateway's calls, which takes an answer for the request that has its number.

Thrift's own gives every request the number 0 and looks at no answer's: one that comes late, or twice, would be taken
for that to another request, with another row in it. And its decoder raises whatever it stumbles over in rubbish.
"""

from __future__ import annotations

from typing import Any

from thriftpy2.thrift import TClient, TException

from store.hbase.answers import NotAnAnswer
from store.hbase.binary_protocol import SEQUENCE_MAX


class NumberedClient(TClient):
    """The calls of ``service``, a module of Thrift's, over ``protocol``.

    They raise the errors that the service declares, ``TException``, ``OSError`` and ``EOFError`` of the connection,
    ``MemoryError``, and ``NotAnAnswer``.
    """

    def __init__(self, service: Any, protocol: Any) -> None:
        answers: Any = _Answers(protocol)
        super().__init__(service, answers, protocol)
        self._answers = answers

    def next_number(self) -> int:
        """For a request that is sent past this client, over the same connection."""
        self._seqid: int = self._seqid % SEQUENCE_MAX + 1
        return self._seqid

    def _send(self, _api: str, **arguments: Any) -> None:
        self._answers.expected = _api, self.next_number()
        super()._send(_api, **arguments)

    def _recv(self, _api: str) -> Any:
        try:
            return super()._recv(_api)
        except (TException, NotAnAnswer, OSError, EOFError, MemoryError):
            raise
        except Exception as error:
            raise NotAnAnswer(f"what cannot be read: {type(error).__name__}: {error}") from error


class _Answers:
    """What of a protocol reads answers; ``expected`` is the method and the number of the request under way."""

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self.trans = protocol.trans
        self.expected = "", 0
        self.read_struct = protocol.read_struct
        self.read_message_end = protocol.read_message_end

    def read_message_begin(self) -> tuple[str, int, int]:
        name, kind, number = self._protocol.read_message_begin()
        method = name if isinstance(name, str) else name.decode("utf-8", "replace")
        if (method, number) != self.expected:
            asked, expected = self.expected
            raise NotAnAnswer(f"the answer to request {number} of {method}, and not to request {expected} of {asked}")
        return method, kind, number
