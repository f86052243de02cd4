"""When a function that a manager runs in transactions is run again: after an abort that a new snapshot may cure.

Never a replay: the function reads the new snapshot and decides anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import tenacity

from client.errors import InvalidRequest, TransactionAborted

_log = logging.getLogger(__name__)

RERUN_WAIT_SECONDS_MAX: Final = 1.0


def retrying_rules(attempts_max: int, runs_again: Callable[[], None]) -> dict[str, Any]:
    """What ``tenacity.Retrying`` and ``AsyncRetrying`` are told; ``runs_again`` is called before each further attempt.

    Raises ``InvalidRequest`` for too few attempts.
    """
    if type(attempts_max) is not int or attempts_max < 1:
        raise InvalidRequest(f"attempts_max is at least 1, a whole number, not {attempts_max!r}")

    def before_sleep(state: tenacity.RetryCallState) -> None:
        _say_why(state)
        runs_again()

    return {
        "retry": tenacity.retry_if_exception(_worth_a_rerun),
        "stop": tenacity.stop_after_attempt(attempts_max),
        "wait": tenacity.wait_random_exponential(multiplier=0.01, max=RERUN_WAIT_SECONDS_MAX),
        "before_sleep": before_sleep,
        "reraise": True,
    }


def _worth_a_rerun(error: BaseException) -> bool:
    return isinstance(error, TransactionAborted) and error.retriable


def _say_why(state: tenacity.RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    # In words: whoever keeps the record would keep the transaction, too, which the error's traceback leads to.
    _log.info("attempt %d: %s; running it again on a new snapshot", state.attempt_number, str(error))
