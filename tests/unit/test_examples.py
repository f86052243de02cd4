"""How many examples Hypothesis tries, as the environment says."""

from __future__ import annotations

import pytest

from tests.examples import FACTOR_VARIABLE, examples


def test_there_are_so_many_times_as_many_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FACTOR_VARIABLE, raising=False)
    assert examples(60) == 60
    monkeypatch.setenv(FACTOR_VARIABLE, "50")
    assert examples(60) == 3_000


@pytest.mark.parametrize("written", ["", "0", "-1", "1.5", "many", "10001"])
def test_what_is_no_such_number_is_refused(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv(FACTOR_VARIABLE, written)
    with pytest.raises(ValueError, match=FACTOR_VARIABLE):
        examples(60)
