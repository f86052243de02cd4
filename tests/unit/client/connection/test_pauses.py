"""How long nothing goes out after refusals."""

from __future__ import annotations

from client.connection.pauses import RETRY_WAIT_MS_MAX, Pause


def rounds(pause: Pause, count: int, asked_ms: int = 0, refused_each: int = 1) -> list[int]:
    """How many milliseconds each of so many pauses takes, where all that goes out after one is refused."""
    lengths, now_s = [], max(1.0, pause.until_s)
    for _ in range(count):
        for _ in range(refused_each):
            pause.refused(now_s, asked_ms)
        lengths.append(round(1000 * (pause.until_s - now_s)))
        now_s = pause.until_s
    return lengths


def test_pauses_grow_up_to_a_bound_and_begin_anew_after_an_answer() -> None:
    pause = Pause()
    assert rounds(pause, 9) == [0, 1, 3, 7, 15, 31, 63, RETRY_WAIT_MS_MAX, RETRY_WAIT_MS_MAX]
    pause.refusals = 0
    assert rounds(pause, 2) == [0, 1]


def test_a_pause_is_never_shorter_than_what_was_asked_for() -> None:
    assert rounds(Pause(), 7, asked_ms=20) == [20, 20, 20, 20, 20, 31, 63]
    assert rounds(Pause(), 2, asked_ms=700) == [700, 700]


def test_all_that_was_refused_of_what_went_out_together_counts_once() -> None:
    assert rounds(Pause(), 6, asked_ms=20, refused_each=16) == [20, 20, 20, 20, 31, 63]


def test_a_later_refusal_makes_no_pause_shorter() -> None:
    pause = Pause()
    pause.refused(1.0, 500)
    pause.refused(1.1, 20)
    assert pause.until_s == 1.5
