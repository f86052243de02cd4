"""A file of tokens: who may do what, for how long and how much. Pure: text and time in, decisions out.

The file holds no secret, only its SHA-256. A plain hash is right here, and a slow one would be wrong: secrets are 256
random bits that we make (``access.making``), not passwords that people choose, so that nobody finds one by trying; and
each look-up stays so cheap that wrong tokens are no load.

Invariants: a secret is compared with every hash of the file, each in constant time, so that the time says nothing about
what is in it. A file is taken as a whole or not at all, and every mistake in it is told at once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, Final

from access.roles import EVERY_ROLE, AccessRole, with_implied

TOKENS_MAX: Final = 1_000
HASHES_PER_TOKEN_MAX: Final = 4
"""More than one while a secret is replaced by the next."""
LIMIT_MAX: Final = 1_000_000
NAME_RULE: Final = "a name has 1 to 64 letters, digits, '_' and '-'"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_YEARS: Final = (1970, 9998)
"""Of an end: near the calendar's own ends no time can be told in another zone."""
_LIMITS = ("connections_max", "requests_in_flight_max")
_KEYS = ("roles", "sha256", "expires", *_LIMITS)


class Refusal(StrEnum):
    """Why somebody is not let in."""

    NO_TOKEN = "no-token"
    UNKNOWN_TOKEN = "unknown-token"
    EXPIRED = "expired"
    ROLE_MISSING = "role-missing"
    TOO_MANY_CONNECTIONS = "too-many-connections"


class Refused(Exception):
    """Somebody is not let in; the text says why and what to do, and holds no secret."""

    def __init__(self, refusal: Refusal, reason: str) -> None:
        super().__init__(reason)
        self.refusal = refusal
        self.reason = reason


class BadTokens(ValueError):
    """A file of tokens with ``mistakes``, each a sentence."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its holder's name and rights. The secret is not here."""

    name: str
    roles: frozenset[AccessRole]
    """Those that are implied included."""
    hashes: tuple[bytes, ...] = field(default=(), repr=False)
    """SHA-256 of each secret that opens."""
    expires: datetime | None = None
    """From then on it opens nothing."""
    connections_max: int = LIMIT_MAX
    """Connections that hold it at once, to one process."""
    requests_in_flight_max: int = LIMIT_MAX
    """Requests that are not answered yet, over all its connections to one process."""

    def check_current(self, now: datetime) -> None:
        """Raises ``Refused`` where it has expired."""
        if self.expires is not None and now >= self.expires:
            raise Refused(Refusal.EXPIRED, f"the token {self.name} expired on {self.expires:%Y-%m-%d %H:%M} UTC")


EVERYBODY: Final = Token("everybody", EVERY_ROLE)
"""Who is there where no tokens are asked for."""


class Tokens:
    """All tokens of a file."""

    def __init__(self, tokens: Mapping[str, Token]) -> None:
        self.by_name = dict(tokens)
        self._hashes = [(known, token) for token in tokens.values() for known in token.hashes]

    def find(self, secret: str) -> Token:
        """The token that a secret belongs to, expired or not. Raises ``Refused``."""
        if not secret:
            advice = "set token_file (PYTHIA_TOKEN_FILE)"
            raise Refused(Refusal.NO_TOKEN, f"a token is asked for here, and none was given: {advice}")
        given, found = hash_of(secret), None
        for known, token in self._hashes:  # all of them, whatever was found
            if hmac.compare_digest(known, given):
                found = token
        if found is None:
            raise Refused(Refusal.UNKNOWN_TOKEN, "the token is not known here: it was withdrawn, or never given out")
        return found


def hash_of(secret: str) -> bytes:
    """SHA-256 of a secret, as the file has it in hexadecimal."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def is_name(text: str) -> bool:
    """Whether a token may be called so: ``NAME_RULE``."""
    return _NAME.fullmatch(text) is not None


def parse(text: str) -> Tokens:
    """The tokens of a file. Raises ``BadTokens`` with every mistake."""
    try:
        parsed = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadTokens([f"it is not TOML: {error}"]) from error
    mistakes = [f"there is no {key}: each token is a table [tokens.NAME]" for key in parsed if key != "tokens"]
    tables = parsed.get("tokens", {})
    if not isinstance(tables, dict):
        raise BadTokens([*mistakes, "tokens has to be tables, each [tokens.NAME]"])
    if len(tables) > TOKENS_MAX:
        mistakes.append(f"there are {len(tables)} tokens: {TOKENS_MAX} at most")
    for name, table in tables.items():
        mistakes += [f"token {name[:80]!r}: {mistake}" for mistake in _mistakes(name, table)]
    if not tables:
        mistakes.append("there is no token in it: nobody could do anything (pythia token create makes one)")
    mistakes += _shared_hashes(tables)
    if mistakes:
        raise BadTokens(mistakes)
    return Tokens({name: _token(name, table) for name, table in tables.items()})


def _mistakes(name: str, table: Any) -> Iterator[str]:
    if not is_name(name):
        yield NAME_RULE
    if not isinstance(table, dict):
        yield f"has to be a table [tokens.{name}]"
        return
    for key in sorted(set(table) - set(_KEYS)):
        yield f"there is no {key}: known are {', '.join(_KEYS)}"
    yield from _mistakes_of_roles(table.get("roles"))
    yield from _mistakes_of_hashes(table.get("sha256"))
    expires = table.get("expires")
    if expires is not None and not isinstance(expires, date):
        yield f"expires is a date such as 2027-01-31, or a time, without quotation marks, not {expires!r}"
    elif expires is not None and not _YEARS[0] <= expires.year <= _YEARS[1]:
        yield f"expires is in a year from {_YEARS[0]} to {_YEARS[1]}, not {expires.year}"
    for key in _LIMITS:
        limit = table.get(key, 1)
        if type(limit) is not int:
            yield f"{key} is a whole number from 1 to {LIMIT_MAX}, not {limit!r}"
        elif not 1 <= limit <= LIMIT_MAX:  # it may have more digits than can be written
            yield f"{key} is a whole number from 1 to {LIMIT_MAX}"


def _mistakes_of_roles(roles: Any) -> Iterator[str]:
    known = ", ".join(AccessRole)
    if not isinstance(roles, list) or not roles:
        yield f"roles is missing: a list of {known}"
        return
    for role in roles:
        if role not in list(AccessRole):
            yield f"there is no role {role!r}: there are {known}"


def _mistakes_of_hashes(hashes: Any) -> Iterator[str]:
    if not isinstance(hashes, list) or not 1 <= len(hashes) <= HASHES_PER_TOKEN_MAX:
        yield f"sha256 is a list of 1 to {HASHES_PER_TOKEN_MAX} hashes, as pythia token create prints them"
        return
    if not all(isinstance(each, str) and _HASH.fullmatch(each) for each in hashes):
        # What stands there may be a secret that was taken for its hash: it is not repeated.
        yield "a hash in sha256 has 64 digits and letters a to f: it is the hash of the secret, never the secret"


def _shared_hashes(tables: Mapping[str, Any]) -> Iterator[str]:
    owners: dict[str, str] = {}
    for name, table in tables.items():
        hashes = table.get("sha256") if isinstance(table, dict) else None
        for each in hashes if isinstance(hashes, list) else []:
            if isinstance(each, str) and owners.setdefault(each, name) != name:
                yield f"token {name!r}: it has the secret of {owners[each]!r}: make each its own"


def _token(name: str, table: Mapping[str, Any]) -> Token:
    return Token(
        name,
        with_implied(AccessRole(role) for role in table["roles"]),
        tuple(bytes.fromhex(each) for each in table["sha256"]),
        _moment(table.get("expires")),
        **{key: table[key] for key in _LIMITS if key in table},
    )


def _moment(expires: date | None) -> datetime | None:
    """A date is its beginning, and a time without a zone is one, in UTC."""
    if expires is None:
        return None
    whole = expires if isinstance(expires, datetime) else datetime(expires.year, expires.month, expires.day)
    return whole.replace(tzinfo=UTC) if whole.tzinfo is None else whole.astimezone(UTC)
