"""What shares a frame, and whose answer is passed on in which turn of the event loop."""

from __future__ import annotations

import pytest

from client.connection.exchange import (
    BEGINS_IN_A_ROW_MAX,
    FRAME_CALLERS_MIN,
)
from client.connection.tickets import (
    Begun,
    Decision,
)
from tests.unit.client.connection.talking import Talk, committed
from wire import (
    BeginReply,
    BeginRequest,
    ProtocolError,
    Reason,
    encode,
)


def test_half_of_the_callers_in_sight_share_a_frame() -> None:
    talk = Talk()
    for start in range(10, 10 + 4 * FRAME_CALLERS_MIN):
        talk.commit(str(start), start, [])
    halves = [2 * FRAME_CALLERS_MIN] * 2
    assert [request.start_timestamps.size for _, request in talk.sent()] == halves  # type: ignore[attr-defined]


def test_shares_stay_the_same_while_callers_are_out_of_sight_for_a_moment() -> None:
    talk = Talk()
    for start in range(10, 10 + 4 * FRAME_CALLERS_MIN):
        talk.commit(str(start), start, [])
    before = talk.exchange.share()
    first, _ = talk.sent()
    talk.answer(first[0], committed(*range(900, 900 + 2 * FRAME_CALLERS_MIN)))
    assert talk.exchange.share() == before == 2 * FRAME_CALLERS_MIN
    for _ in range(1_000):
        talk.exchange.share()
    assert talk.exchange.share() == FRAME_CALLERS_MIN, "the other half is not there any more"


def test_answers_are_passed_on_a_frame_at_a_time() -> None:
    talk = Talk()
    for start in range(10, 10 + 4 * FRAME_CALLERS_MIN):
        talk.commit(str(start), start, [])
    frames = talk.sent()
    times = range(900, 900 + 2 * FRAME_CALLERS_MIN)
    talk.exchange.received(b"".join(encode(committed(*times), number) for number, _ in frames))
    assert talk.ends == {}
    assert talk.exchange.settle()
    assert len(talk.ends) == 2 * FRAME_CALLERS_MIN
    assert talk.exchange, "it is not to be closed yet"
    assert not talk.exchange.settle()
    assert len(talk.ends) == 4 * FRAME_CALLERS_MIN


def test_begins_do_not_wait_behind_commits_nor_these_behind_all_begins() -> None:
    talk = Talk()
    talk.commit("commit", 10)
    [(commit, _)] = talk.sent()
    begins = []
    for place in range(BEGINS_IN_A_ROW_MAX + 1):
        for name in range(2 * FRAME_CALLERS_MIN):
            talk.begin(f"{place} {name}")
        begins += talk.sent()
        talk.exchange._begins = 0  # as many at once as there never are, to see the order
    answers = [encode(committed(900), commit)]
    for number, request in begins:
        assert isinstance(request, BeginRequest)
        answers.append(encode(BeginReply(100, request.count, 99, 50), number))
    talk.exchange.received(b"".join(answers))
    told = []
    more = True
    while more:
        more = talk.exchange.settle()
        told.append("commit" in talk.ends)
    assert told.index(True) == BEGINS_IN_A_ROW_MAX
    assert len(talk.ends) == 1 + len(begins) * 2 * FRAME_CALLERS_MIN


def test_who_waits_no_more_takes_no_answer_from_the_others() -> None:
    talk = Talk()
    ticket = talk.begin("a")
    for name in ("gone", "c"):
        ticket.callers.append(talk.caller(name))
    [(number, _)] = talk.sent()
    talk.ends["gone"] = None
    talk.answer(number, BeginReply(100, 3, 99, 50))
    assert talk.ends == {"a": Begun(100, 1, 99, 50), "gone": None, "c": Begun(102, 1, 99, 50)}


def test_what_came_before_the_connection_was_lost_is_not_lost() -> None:
    talk = Talk()
    talk.commit("answered", 10)
    lost = talk.commit("lost", 20)
    lost.alone = True
    (first, _), _ = talk.sent()
    talk.exchange.received(encode(committed(900), first))
    assert talk.exchange.lose("it broke") == [lost]
    assert talk.ends == {"answered": Decision(900, Reason.COMMITTED, False)}


def test_who_gets_nonsense_for_an_answer_is_not_forgotten() -> None:
    talk = Talk()
    asked = talk.begin("a")
    other = talk.commit("b", 10)
    [(number, _), (commit, _)] = talk.sent()
    talk.exchange.received(encode(BeginReply(100, 2, 99, 50), number) + encode(committed(900), commit))
    with pytest.raises(ProtocolError, match="where 1 were asked for"):
        talk.exchange.settle()
    assert talk.exchange.lose("it speaks nonsense") == [asked]
    assert other not in talk.queue.commits
    assert talk.ends == {"b": Decision(900, Reason.COMMITTED, False)}


def test_nobody_is_answered_twice() -> None:
    talk = Talk()
    talk.commit("a", 10)
    [(number, _)] = talk.sent()
    talk.exchange.received(encode(committed(900), number) + encode(committed(901), number))
    with pytest.raises(ProtocolError, match="answered twice"):
        talk.exchange.settle()
    assert talk.ends == {"a": Decision(900, Reason.COMMITTED, False)}
