"""Coalescing, without a socket: what goes out together, what waits, and who is told what."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from client.connection.exchange import (
    BEGIN_FRAMES_MAX,
    COMMIT_FRAMES_MAX,
    FRAME_CELLS_MAX,
    FRAME_TRANSACTIONS_MAX,
)
from client.connection.tickets import BatchTicket, BeginTicket, Begun, CommitTicket, Decision, Decisions, QuestionTicket
from client.errors import InvalidRequest, NoPrimary, ReplyLost
from tests.unit.client.connection.talking import Talk, committed
from wire import (
    AbortRequest,
    BadRequest,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    Kind,
    LargeCommitRequest,
    Message,
    NotPrimary,
    OutcomeReply,
    Overloaded,
    ProtocolError,
    Reason,
    encode_frame,
)


def test_what_waits_goes_out_together_and_each_gets_its_own() -> None:
    talk = Talk()
    talk.begin("a")
    talk.begin("b", count=3)
    talk.begin("c")
    [(number, request)] = talk.sent()
    assert request == BeginRequest(5)
    talk.answer(number, BeginReply(100, 5, 99, 50))
    assert talk.ends == {"a": Begun(100, 1, 99, 50), "b": Begun(101, 3, 99, 50), "c": Begun(104, 1, 99, 50)}


def test_commits_share_a_frame_and_are_answered_one_by_one() -> None:
    talk = Talk()
    talk.commit("a", 10, [1, 2])
    talk.commit("b", 20, [])
    [(number, request)] = talk.sent()
    assert isinstance(request, CommitRequest)
    assert request.start_timestamps.tolist() == [10, 20]
    assert request.offsets.tolist() == [0, 2, 2]
    talk.answer(number, CommitReply(np.array([30, 0]), np.array([0, 1], np.uint8)))
    assert talk.ends == {"a": Decision(30, Reason.COMMITTED, False), "b": Decision(0, Reason.CONFLICT, False)}


def test_a_few_frames_are_under_way_and_what_comes_meanwhile_goes_together() -> None:
    talk = Talk()
    numbers = []
    for start in range(10, 10 + COMMIT_FRAMES_MAX):
        talk.commit(str(start), start)
        [(number, _)] = talk.sent()
        numbers.append(number)
    for start in range(100, 105):
        talk.commit(str(start), start)
    assert talk.sent() == []
    talk.answer(numbers[0], committed(900))
    [(_, request)] = talk.sent()
    assert isinstance(request, CommitRequest)
    assert request.start_timestamps.tolist() == [100, 101, 102, 103, 104]


def test_begins_have_frames_of_their_own() -> None:
    talk = Talk()
    for name in range(BEGIN_FRAMES_MAX + 1):
        talk.begin(str(name))
        assert len(talk.sent()) == (name < BEGIN_FRAMES_MAX)
    talk.commit("c", 10)
    assert len(talk.sent()) == 1, "full begins do not hold up commits"


def test_frames_are_bounded_in_transactions_and_in_cells() -> None:
    talk = Talk()
    for start in range(10, 11 + 3 * FRAME_TRANSACTIONS_MAX):
        talk.commit(str(start), start, [])
    full = [FRAME_TRANSACTIONS_MAX] * 3
    assert [request.start_timestamps.size for _, request in talk.sent()] == [*full, 1]  # type: ignore[attr-defined]
    other = Talk()
    for start in (10, 20, 30):
        other.commit(str(start), start, range(FRAME_CELLS_MAX // 2))
    assert [request.start_timestamps.size for _, request in other.sent()] == [2, 1]  # type: ignore[attr-defined]


def test_the_mistake_of_one_does_not_refuse_the_others_of_its_frame() -> None:
    talk = Talk()
    talk.commit("good", 10)
    talk.commit("bad", 20)
    [(number, _)] = talk.sent()
    talk.answer(number, BadRequest("transaction 20 has never been handed out"))
    assert talk.ends == {}
    alone = talk.sent()
    assert [request.start_timestamps.tolist() for _, request in alone] == [[10], [20]]  # type: ignore[attr-defined]
    talk.answer(alone[0][0], committed(30))
    talk.answer(alone[1][0], BadRequest("transaction 20 has never been handed out"))
    assert talk.ends["good"] == Decision(30, Reason.COMMITTED, False)
    assert isinstance(talk.ends["bad"], InvalidRequest)


@pytest.mark.parametrize("wrong", [-1, 2**64, 0.5], ids=["negative", "too large", "no integer"])
def test_a_conflict_key_that_is_none_is_refused_before_it_is_sent_and_nobody_else_suffers(wrong: int) -> None:
    talk = Talk()
    for name, cell in (("a", 1), ("wrong", wrong), ("b", 2)):
        talk.commit(name, 10, [cell])
    numbers = [number for number, _ in talk.sent()]
    assert list(talk.ends) == ["wrong"]
    assert isinstance(talk.ends["wrong"], InvalidRequest)
    for number in numbers:
        talk.answer(number, committed(30))
    assert talk.ends["a"] == talk.ends["b"] == Decision(30, Reason.COMMITTED, False)
    assert not talk.exchange


def no_question(talk: Talk) -> None:
    question = AbortRequest(np.arange(1, 2**17 + 1))
    talk.asked(QuestionTicket(talk.caller("wrong"), 0.0, 10.0, question, (OutcomeReply,)))


def no_timestamp(talk: Talk) -> None:
    question = LargeCommitRequest(2**63, 9, 0, 5)
    talk.asked(QuestionTicket(talk.caller("wrong"), 0.0, 10.0, question, (CommitReply,)))


def no_batch(talk: Talk) -> None:
    starts = np.arange(10, 2**15 + 10)
    offsets = np.zeros(starts.size + 1, np.uint32)
    request = CommitRequest(starts, starts - 1, starts * 0, offsets, np.empty(0, np.uint64))
    talk.asked(BatchTicket(talk.caller("wrong"), 0.0, 10.0, request))


@pytest.mark.parametrize(
    "ask",
    [
        no_question,
        no_timestamp,
        no_batch,
        lambda talk: talk.commit("wrong", 10, range(2**17)),
        lambda talk: talk.begin("wrong", count=2**32),
    ],
    ids=["ids", "timestamp", "batch", "cells", "begins"],
)
def test_what_no_frame_can_hold_is_refused_and_nothing_of_it_stays_in_the_way(ask: Callable[[Talk], object]) -> None:
    talk = Talk()
    answers: dict[type[Message], Message] = {
        AbortRequest: OutcomeReply(np.array([2], np.uint8), np.array([0])),
        BeginRequest: BeginReply(100, 1, 99, 50),
        CommitRequest: committed(30),
    }
    for turn in range(COMMIT_FRAMES_MAX + 1):
        talk.ends.pop("wrong", None)
        names = {kind: f"{kind} {turn}" for kind in ("question", "begin", "commit")}
        question = AbortRequest(np.array([5]))
        talk.asked(QuestionTicket(talk.caller(names["question"]), 0.0, 10.0, question, (OutcomeReply,)))
        ask(talk)
        talk.begin(names["begin"])
        talk.commit(names["commit"], 10)
        for number, request in talk.sent():
            talk.answer(number, answers[type(request)])
        assert isinstance(talk.ends["wrong"], InvalidRequest)
        assert names.keys() == {name.split()[0] for name in talk.ends if name.endswith(str(turn))}
    assert not talk.exchange
    assert talk.exchange.callers == 0


def test_a_batch_goes_as_it_is() -> None:
    talk = Talk()
    starts, snapshots, none = np.array([10, 20]), np.array([9, 19]), np.zeros(2, np.int64)
    request = CommitRequest(starts, snapshots, none, np.zeros(3, np.uint32), np.empty(0, np.uint64))
    talk.asked(BatchTicket(talk.caller("batch"), 0.0, 10.0, request))
    talk.commit("alone", 30)
    [(number, batch), (_, single)] = talk.sent()
    assert batch == request
    assert single.start_timestamps.tolist() == [30]  # type: ignore[attr-defined]
    talk.answer(number, committed(40, 41))
    assert talk.ends == {"batch": Decisions(committed(40, 41), False)}


@pytest.mark.parametrize("refusal", [NotPrimary("there:1"), Overloaded(7)])
def test_a_refusal_hands_the_tickets_back(refusal: Message) -> None:
    talk = Talk()
    talk.commit("a", 10)
    talk.commit("b", 20)
    [(number, _)] = talk.sent()
    talk.answer(number, refusal)
    assert talk.refused == [(2, refusal)]
    assert talk.ends == {}


def test_a_lane_that_pauses_holds_up_no_other() -> None:
    talk = Talk()
    question = AbortRequest(np.array([5]))
    talk.queue.pauses[QuestionTicket.lane].refused(0.5, 1_000)  # it is 1.0 whenever something is sent
    talk.asked(QuestionTicket(talk.caller("question"), 0.0, 10.0, question, (OutcomeReply,)))
    talk.begin("begin")
    talk.commit("commit", 10)
    assert [type(request) for _, request in talk.sent()] == [BeginRequest, CommitRequest]
    talk.queue.pauses[BeginTicket.lane].refused(0.5, 1_000)
    talk.queue.pauses[CommitTicket.lane].refused(0.5, 1_000)
    talk.begin("later")
    talk.commit("later", 20)
    assert talk.sent() == []
    talk.queue.pauses[QuestionTicket.lane].until_s = 1.0
    assert [request for _, request in talk.sent()] == [question]


def test_an_answer_ends_the_refusals_of_its_lane_alone() -> None:
    talk = Talk()
    for pause in talk.queue.pauses:
        pause.refusals = 3
    talk.begin("begin")
    talk.commit("commit", 10)
    (begin, _), (commit, _) = talk.sent()
    talk.answer(begin, Overloaded(7))
    talk.answer(commit, committed(30))
    assert [pause.refusals for pause in talk.queue.pauses] == [3, 0, 3]


def test_what_was_lost_is_remembered_of_commits_and_makes_no_difference_to_questions() -> None:
    talk = Talk()
    commit, begin = talk.commit("commit", 10), talk.begin("begin")
    talk.sent()
    lost = talk.exchange.lose("the connection was closed")
    assert {*lost} == {commit, begin}
    assert not talk.exchange
    talk.queue.add_first(lost)
    again = {type(request): number for number, request in talk.sent()}
    talk.answer(again[CommitRequest], committed(30))
    assert talk.ends["commit"] == Decision(30, Reason.COMMITTED, True)
    for ticket in (talk.commit("doubt", 40), talk.begin("nothing")):
        ticket.lost = ReplyLost("no answer")
        ticket.give_up(3.0, "too late")
    assert isinstance(talk.ends["doubt"], ReplyLost)
    assert isinstance(talk.ends["nothing"], NoPrimary)


def test_who_stops_waiting_is_found_in_the_queue_and_under_way() -> None:
    talk = Talk()
    talk.commit("under way", 10, until_s=5.0)
    talk.sent()
    for name, until_s in (("late", 5.0), ("patient", 9.0)):
        talk.begin(name, until_s=until_s)
    assert [ticket.lane for ticket in talk.queue.take_overdue(5.0)] == [BeginTicket.lane]
    assert len(talk.queue.begins) == 1
    [under_way] = talk.exchange.overdue(5.0)
    under_way.give_up(5.0, "too late")
    under_way.fail(InvalidRequest("again"))
    assert isinstance(talk.ends["under way"], NoPrimary), "a caller is told once"
    assert talk.exchange.lose("gone") == [], "nobody waits for it any more"


def test_who_share_a_request_share_no_error() -> None:
    """Each raises it: the traceback of one would hold what another one reads."""
    talk, error = Talk(), NoPrimary(5, "nobody serves")
    BeginTicket([talk.caller("a"), talk.caller("b")], 0.0, 10.0, 1).fail(error)
    told = [talk.ends["a"], talk.ends["b"]]
    assert len({id(each) for each in (error, *told)}) == 3
    assert [(type(each), str(each), vars(each)) for each in told] == [(NoPrimary, str(error), vars(error))] * 2


def test_who_wants_to_know_is_told_that_it_was_sent() -> None:
    talk = Talk()
    told: list[str] = []
    talk.commit("a", 10).on_sent = lambda: told.append("a")
    talk.sent()
    assert told == []
    [on_sent] = talk.exchange.take_untold()
    on_sent()
    assert told == ["a"]
    assert talk.exchange.take_untold() == []


def test_a_question_gets_its_kind_of_answer() -> None:
    talk = Talk()
    question = AbortRequest(np.array([5]))
    for name in ("first", "second"):
        talk.asked(QuestionTicket(talk.caller(name), 0.0, 10.0, question, (OutcomeReply,)))
    (first, _), (second, _) = talk.sent()
    reply = OutcomeReply(np.array([2], np.uint8), np.array([0]))
    talk.answer(second, reply)
    assert talk.ends == {"second": reply}
    with pytest.raises(ProtocolError, match="another version"):
        talk.answer(first, committed(3))


@pytest.mark.parametrize(
    ("number", "answer"),
    [(99, committed(3)), (0, Overloaded(5)), (1, committed(3, 4)), (1, OutcomeReply(np.array([2]), np.array([0])))],
    ids=["never asked", "of the connection", "too many", "another kind"],
)
def test_nonsense_is_no_answer(number: int, answer: Message) -> None:
    talk = Talk()
    talk.commit("a", 10)
    talk.sent()
    with pytest.raises(ProtocolError):
        talk.answer(number, answer)


def test_more_or_fewer_begun_than_asked_for_is_nonsense() -> None:
    talk = Talk()
    talk.begin("a")
    [(number, _)] = talk.sent()
    with pytest.raises(ProtocolError, match="where 1 were asked for"):
        talk.answer(number, BeginReply(100, 2, 99, 50))


@pytest.mark.parametrize(
    ("times", "reasons"),
    [
        ([0], [0]),
        ([5], [Reason.CONFLICT]),
        ([-4], [0]),
        ([0], [99]),
        ([4, 0], [0, 0]),
        ([4, 5], [0, Reason.CONFLICT]),
        ([0, 5], [0, Reason.CONFLICT]),
        ([-4, 0], [0, Reason.CONFLICT]),
        ([4, 0], [0, 99]),
    ],
)
def test_decisions_that_no_oracle_makes_are_told_to_nobody(times: list[int], reasons: list[int]) -> None:
    talk, count = Talk(), len(times)
    for place in range(count):
        talk.commit(str(place), 10 + place)
    [(number, _)] = talk.sent()
    answer = struct.pack(f"<II{count}q{count}B", count, 0, *times, *reasons)
    talk.exchange.received(encode_frame(Kind.COMMIT_REPLY, number, answer))
    with pytest.raises(ProtocolError, match="another version"):
        talk.exchange.settle()
    assert talk.ends == {}
