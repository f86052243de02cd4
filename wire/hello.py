"""The opening of every connection: which versions either side speaks, and who the client is.

**The layout of these three kinds, header included, is frozen for all versions.** Whatever later versions change, a
client and an oracle of any two releases understand each other's opening, and say in words which of them to upgrade.
A client says hello first, and nothing is answered before; with it goes its token, which no ``repr`` and no error shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from versions import RELEASE
from wire.columns import CODE, PayloadReader, number_bytes, reason_bytes, text_bytes
from wire.errors import ProtocolError
from wire.frames import VERSION, VERSION_LOWEST, Kind
from wire.message import Message

HELLO_BYTES_MAX: Final = 4096
"""The largest frame of a client who has not been let in."""
_TEXT_BYTES_MAX: Final = 1024


class NotAllowedCode(IntEnum):
    """Why somebody is not let in, or not granted a request."""

    NO_TOKEN = 1
    UNKNOWN_TOKEN = 2
    EXPIRED = 3
    ROLE_MISSING = 4
    TOO_MANY_CONNECTIONS = 5
    NO_COMMON_VERSION = 6
    TLS_NEEDED = 7
    """The port speaks TLS only."""
    UNKNOWN = 255
    """A code of a later release: the reason says it."""


@dataclass(frozen=True, slots=True, eq=False)
class HelloRequest(Message):
    """Who is there. Layout: lowest version u8, highest version u8, then release and token as texts (length in bytes
    u32, UTF-8); the token may be empty.
    """

    KIND = Kind.HELLO_REQUEST
    token: str = field(default="", repr=False)
    lowest: int = VERSION_LOWEST
    highest: int = VERSION
    release: str = RELEASE

    def __post_init__(self) -> None:
        _check_versions(self.lowest, self.highest)
        for name in ("token", "release"):
            if len(getattr(self, name).encode("utf-8", "replace")) > _TEXT_BYTES_MAX:
                raise ProtocolError(f"the {name} is longer than {_TEXT_BYTES_MAX} bytes")

    def payload(self) -> bytes:
        """The bytes after the header."""
        versions = number_bytes(self.lowest, CODE) + number_bytes(self.highest, CODE)
        return versions + text_bytes(self.release) + text_bytes(self.token)

    @classmethod
    def read(cls, reader: PayloadReader) -> HelloRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        lowest, highest, release = reader.number(CODE), reader.number(CODE), reader.text()
        return cls(reader.text(), lowest, highest, release)


@dataclass(frozen=True, slots=True, eq=False)
class HelloReply(Message):
    """Come in. Layout: version chosen u8, lowest u8, highest u8 of the oracle, then its release and the roles that are
    granted as texts, the roles with commas.
    """

    KIND = Kind.HELLO_REPLY
    version: int
    roles: tuple[str, ...]
    lowest: int = VERSION_LOWEST
    highest: int = VERSION
    release: str = RELEASE

    def __post_init__(self) -> None:
        _check_versions(self.lowest, self.highest)
        if not self.lowest <= self.version <= self.highest:
            raise ProtocolError(f"version {self.version} is none of {self.lowest} to {self.highest}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        versions = b"".join(number_bytes(each, CODE) for each in (self.version, self.lowest, self.highest))
        return versions + text_bytes(self.release) + text_bytes(",".join(self.roles))

    @classmethod
    def read(cls, reader: PayloadReader) -> HelloReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        version, lowest, highest = (reader.number(CODE) for _ in range(3))
        release, roles = reader.text(), reader.text()
        return cls(version, tuple(role for role in roles.split(",") if role), lowest, highest, release)


@dataclass(frozen=True, slots=True, eq=False)
class NotAllowed(Message):
    """Nothing was done: whoever asks may not. As an answer to hello the connection is closed after it.

    Layout: code u8, the reason as text.
    """

    KIND = Kind.NOT_ALLOWED
    code: NotAllowedCode
    text: str

    def payload(self) -> bytes:
        """The bytes after the header; a long text is cut."""
        return number_bytes(self.code, CODE) + reason_bytes(self.text)

    @classmethod
    def read(cls, reader: PayloadReader) -> NotAllowed:
        """The message in ``reader``. Raises ``ProtocolError``."""
        code = reader.number(CODE)
        known = code in NotAllowedCode.__members__.values()
        return cls(NotAllowedCode(code) if known else NotAllowedCode.UNKNOWN, reader.text())


def common_version(hello: HelloRequest, lowest: int = VERSION_LOWEST, highest: int = VERSION) -> int | NotAllowed:
    """The highest version that both speak; or that there is none, and which side to upgrade."""
    chosen = min(hello.highest, highest)
    if chosen >= max(hello.lowest, lowest):
        return chosen
    behind = "the client" if hello.highest < lowest else "the oracle"
    return NotAllowed(
        NotAllowedCode.NO_COMMON_VERSION,
        f"no version of the protocol is spoken by both: the client, release {hello.release}, speaks {hello.lowest} to "
        f"{hello.highest}, the oracle, release {RELEASE}, speaks {lowest} to {highest}: upgrade {behind}",
    )


def _check_versions(lowest: int, highest: int) -> None:
    if not 1 <= lowest <= highest <= 255:
        raise ProtocolError(f"versions are a range from 1 to 255, not {lowest} to {highest}")
