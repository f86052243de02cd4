"""A file of tokens: what is read of it, every mistake at once, and how a secret is looked up."""

from __future__ import annotations

import hmac
from datetime import UTC, datetime
from typing import Any

import pytest

from access.making import make_secret
from access.roles import EVERY_ROLE, AccessRole, with_implied
from access.tokens import BadTokens, Refusal, Refused, Token, hash_of, parse

SECRET, OTHER = make_secret(), make_secret()


def lines(name: str = "etl", roles: str = '["transact"]', secret: str = SECRET, more: str = "") -> str:
    return f'[tokens.{name}]\nroles = {roles}\nsha256 = ["{hash_of(secret).hex()}"]\n{more}\n'


def test_a_token_is_found_by_its_secret_and_has_the_roles_that_its_roles_imply() -> None:
    tokens = parse(lines(more="connections_max = 5\nrequests_in_flight_max = 7") + lines("ops", '["operate"]', OTHER))
    etl = tokens.find(SECRET)
    assert (etl.name, etl.connections_max, etl.requests_in_flight_max) == ("etl", 5, 7)
    assert etl.roles == {AccessRole.TRANSACT, AccessRole.READ}
    assert tokens.find(OTHER).roles == {AccessRole.OPERATE, AccessRole.READ}
    assert with_implied({AccessRole.READ}) == {AccessRole.READ}
    assert with_implied({AccessRole.TRANSACT, AccessRole.OPERATE}) == EVERY_ROLE


@pytest.mark.parametrize(
    ("secret", "refusal"),
    [("", Refusal.NO_TOKEN), (OTHER, Refusal.UNKNOWN_TOKEN), (hash_of(SECRET).hex(), Refusal.UNKNOWN_TOKEN)],
    ids=["none", "another", "its-hash"],
)
def test_who_has_no_secret_of_the_file_is_refused(secret: str, refusal: Refusal) -> None:
    with pytest.raises(Refused) as caught:
        parse(lines()).find(secret)
    assert caught.value.refusal is refusal
    assert not secret or secret not in caught.value.reason


def test_every_hash_is_compared_in_constant_time_whatever_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []
    compare = hmac.compare_digest

    def watched(known: Any, given: Any) -> bool:
        compared.append((known, given))
        return compare(known, given)

    tokens = parse(lines() + lines("ops", '["operate"]', OTHER))
    monkeypatch.setattr(hmac, "compare_digest", watched)
    assert tokens.find(SECRET).name == "etl"
    assert compared == [(hash_of(SECRET), hash_of(SECRET)), (hash_of(OTHER), hash_of(SECRET))]


def test_both_secrets_open_while_one_replaces_the_other() -> None:
    both = f'[tokens.etl]\nroles = ["read"]\nsha256 = ["{hash_of(SECRET).hex()}", "{hash_of(OTHER).hex()}"]'
    tokens = parse(both)
    assert tokens.find(SECRET) is tokens.find(OTHER)


@pytest.mark.parametrize("written", ["2027-01-31", "2027-01-31T00:00:00", "2027-01-31T02:00:00+02:00"])
def test_a_token_ends_at_its_moment(written: str) -> None:
    token = parse(lines(more=f"expires = {written}")).find(SECRET)
    token.check_current(datetime(2027, 1, 30, 23, 59, 59, tzinfo=UTC))
    with pytest.raises(Refused, match="expired on 2027-01-31") as caught:
        token.check_current(datetime(2027, 1, 31, tzinfo=UTC))
    assert caught.value.refusal is Refusal.EXPIRED


def test_a_token_does_not_show_its_hashes() -> None:
    assert hash_of(SECRET).hex() not in repr(parse(lines()).find(SECRET))
    assert "hashes" not in repr(Token("a", frozenset(), (b"1",)))


def test_every_mistake_is_told_at_once_and_none_repeats_what_may_be_a_secret() -> None:
    wrong = f"""
    listen = 5
    [tokens."no spaces"]
    roles = ["transact"]
    sha256 = ["{SECRET}"]
    [tokens.b]
    roles = ["transcat"]
    sha256 = []
    expires = "2027-01-31"
    connections_max = 0
    conections = 1
    [tokens.c]
    sha256 = ["{"a" * 64}"]
    [tokens.d]
    roles = ["read"]
    sha256 = ["{"a" * 64}"]
    """
    with pytest.raises(BadTokens) as caught:
        parse(wrong)
    told = "\n".join(caught.value.mistakes)
    for part in (
        "there is no listen", "'no spaces'", "never the secret", "no role 'transcat'", "1 to 4 hashes",
        "without quotation marks", "connections_max is a whole number", "there is no conections", "roles is missing",
        "it has the secret of 'c'",
    ):  # fmt: skip
        assert part in told
    assert SECRET not in told


@pytest.mark.parametrize("text", ["", "tokens = 5", "[tokens", "[tokens.a]\nroles = 1\nsha256 = 2", "[[tokens]]\na=1"])
def test_what_is_no_file_of_tokens_is_refused(text: str) -> None:
    with pytest.raises(BadTokens):
        parse(text)


def test_secrets_are_long_and_never_the_same() -> None:
    made = {make_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(len(secret) >= 40 and secret.startswith("pythia_") for secret in made)
