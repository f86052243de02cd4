"""Who is let in, how many at once, and who has to go."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from access import EVERY_ROLE, Gate, Refusal, Refused, Tokens
from access.gate import require
from access.roles import AccessRole
from access.tokens import LIMIT_MAX, Token, hash_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def tokens(connections_max: int = LIMIT_MAX) -> Tokens:
    return Tokens({"etl": Token("etl", frozenset({AccessRole.READ}), (hash_of("s"),), None, connections_max)})


def refusal(gate: Gate, secret: str = "s") -> Refusal:
    with pytest.raises(Refused) as caught:
        gate.enter(secret, NOW)
    return caught.value.refusal


def test_where_no_tokens_are_asked_for_everybody_has_every_role() -> None:
    bearer = Gate().enter("whatever", NOW)
    assert bearer.token.roles == EVERY_ROLE
    Gate().check(bearer, b"", NOW)


def test_connections_of_a_token_are_bounded_and_places_come_free() -> None:
    gate = Gate(lambda: tokens(connections_max=2))
    first, second = gate.enter("s", NOW), gate.enter("s", NOW)
    assert first is second
    assert refusal(gate) is Refusal.TOO_MANY_CONNECTIONS
    gate.leave(first)
    gate.enter("s", NOW)
    assert refusal(gate) is Refusal.TOO_MANY_CONNECTIONS


def test_who_was_let_in_goes_when_the_token_is_withdrawn_replaced_or_ends() -> None:
    in_force = tokens()
    gate = Gate(lambda: in_force)
    bearer = gate.enter("s", NOW)
    gate.check(bearer, hash_of("s"), NOW)
    with pytest.raises(Refused, match="withdrawn"):
        gate.check(bearer, hash_of("another of its secrets"), NOW)
    in_force = Tokens({"etl": Token("etl", frozenset(AccessRole), (hash_of("s"),), datetime(2026, 11, 23, tzinfo=UTC))})
    gate.check(bearer, hash_of("s"), NOW)
    assert bearer.token.roles == EVERY_ROLE, "the roles are not those of the file now"
    with pytest.raises(Refused, match="expired"):
        gate.check(bearer, hash_of("s"), datetime(2026, 11, 23, tzinfo=UTC))
    in_force = Tokens({})
    with pytest.raises(Refused, match="withdrawn"):
        gate.check(bearer, hash_of("s"), NOW)


def test_a_missing_role_is_named() -> None:
    token = tokens().find("s")
    require(token, AccessRole.READ, "a look")
    with pytest.raises(Refused, match="a commit asks for the role transact: the token etl has read") as caught:
        require(token, AccessRole.TRANSACT, "a commit")
    assert caught.value.refusal is Refusal.ROLE_MISSING
