"""Settings are read from every source by the same rules, and all mistakes are told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from configuration.checking import InForce, Mistake, Said, in_force
from configuration.showing import lines_in_force
from configuration.sources import of_environment, of_file, of_flags, of_pairs
from tests.unit.configuration.declared import INNER, KETTLE


def from_file(values: dict[str, Any]) -> Said:
    return Said(KETTLE, values, "the file f", texts=False)


def mistakes_of(*said: Said, complete: bool = False) -> list[str]:
    return [str(mistake) for mistake in in_force(KETTLE, said, complete=complete)[1]]


def read(tmp_path: Path, text: str, others: tuple[str, ...] = ()) -> tuple[list[Said], list[Mistake]]:
    file = tmp_path / "k.toml"
    file.write_text(text)
    return of_file(str(file), [KETTLE, INNER], others)


def test_flags_go_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file, _ = read(tmp_path, "[kettle]\nwater_ml = 600\nshare = 1\nwhistle = true\n")
    environment, _ = of_environment({"K_ML": "700", "K_SHARE": "0.25", "OTHER": "1"}, [KETTLE, INNER])
    flags = of_flags(KETTLE, {"water_ml": "800", "share": None, "whistle": None})
    found, mistakes = in_force(KETTLE, [*file, *environment, *flags], complete=False)
    assert mistakes == []
    assert found["water_ml"] == InForce(800, "the flag --water-ml")
    assert found["share"] == InForce(0.25, "the variable K_SHARE")
    assert found["whistle"].value is True
    assert found["whistle"].origin.startswith("the file")
    assert found["colour"] == InForce("red", "default")


def test_every_mistake_is_told_at_once() -> None:
    wrong = {"watr_ml": 1, "share": 7.5, "whistle": "yes", "colour": "green", "cups": 3, "password": 5}
    told = mistakes_of(from_file(wrong))
    expected = (
        "there is no setting 'watr_ml'; did you mean 'water_ml'?",
        "share needs a number from 0.1 to 1 (share), not 7.5",
        "whistle needs true or false, not 'yes'; write it without quotes",
        "colour is one of red, blue, not 'green'",
        "3 is not even",
        "password needs a text",
    )
    assert len(told) == len(expected)
    for reason in expected:
        assert any(reason in mistake for mistake in told), (reason, told)
    assert all(mistake.startswith("the file f, [kettle] ") for mistake in told)


@pytest.mark.parametrize("wrong", ["600", 600.5, True, [600], None])
def test_a_number_in_a_file_is_a_number(wrong: object) -> None:
    assert len(mistakes_of(from_file({"water_ml": wrong}))) == 1


def test_a_limit_gives_its_reason() -> None:
    [told] = mistakes_of(from_file({"water_ml": 1701}))
    assert "water_ml must be 1700 at most (ml), not 1701: it boils over" in told


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_what_is_no_finite_number_is_a_mistake(text: str) -> None:
    assert len(mistakes_of(*of_flags(KETTLE, {"share": text}))) == 1


def test_contradictions_are_told_with_the_other_mistakes_but_not_of_faulty_values() -> None:
    told = mistakes_of(from_file({"cups": 8, "whistle": True, "colour": "blue", "pin": 99}))
    assert [mistake.rpartition(": ")[2] for mistake in told][1:] == ["more cups than water", "blue ones do not whistle"]
    assert not any("cups than" in mistake for mistake in mistakes_of(from_file({"cups": 8, "water_ml": "much"})))


def test_a_contradiction_names_both_sources(tmp_path: Path) -> None:
    environment, _ = of_environment({"K_WHISTLE": "true"}, [KETTLE])
    [told] = mistakes_of(from_file({"colour": "blue"}), *environment)
    assert told == "the file f and the variable K_WHISTLE: blue ones do not whistle"


def test_what_is_needed_is_missed_only_when_all_is_known() -> None:
    assert mistakes_of() == []
    assert mistakes_of(complete=True) == [
        "owner is missing: give --owner, or the variable K_OWNER, or owner under [kettle] in a file"
    ]


def test_a_secret_is_shown_nowhere() -> None:
    found, _ = in_force(KETTLE, [from_file({"password": "hush", "pin": 7})], complete=False)
    lines = "\n".join(lines_in_force(KETTLE, found))
    assert "hush" not in lines
    assert "pin = (hidden)" in lines
    for wrong in ({"pin": 7777}, {"pin": "7777"}, {"password": 7777}):
        [told] = mistakes_of(from_file(wrong))
        assert "7777" not in told


def test_tables_that_nobody_reads_are_told_and_those_of_others_left_alone(tmp_path: Path) -> None:
    said, mistakes = read(tmp_path, "stray = 1\n[kettel]\na = 1\n[other]\nb = 1\n[kettle.limts]\nc = 1\n", ("other",))
    assert [each.values for each in said if each.values] == []
    told = " ".join(map(str, mistakes))
    for part in ("stray stands outside", "[kettel]; did you mean [kettle]?", "did you mean [kettle.limits]?"):
        assert part in told
    assert len(mistakes) == 3
    assert "[other]" in str(read(tmp_path, "[other]\nb = 1\n")[1][0])


@pytest.mark.parametrize(("text", "reason"), [("a = ", "not TOML"), ("[kettle]\nx = 1\nx = 2\n", "not TOML")])
def test_a_file_that_is_no_toml_is_told(tmp_path: Path, text: str, reason: str) -> None:
    said, [mistake] = read(tmp_path, text)
    assert said == []
    assert reason in str(mistake)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for name, content in (("none", None), ("binary", b"\xff\xfe"), ("large", bytes(2**20 + 1))):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        said, mistakes = of_file(str(tmp_path / name), [KETTLE], ())
        assert (said, len(mistakes)) == ([], 1)


def test_a_file_may_begin_with_a_mark_and_its_lines_end_as_on_windows(tmp_path: Path) -> None:
    said, mistakes = read(tmp_path, "\ufeff[kettle.limits]\r\nwater_ml = 5\r\n")
    assert mistakes == []
    assert [each.values for each in said if each.values] == [{"water_ml": 5}]


def test_pairs_say_what_is_wrong_with_them() -> None:
    said, mistakes = of_pairs(INNER, "--limit", ["water_ml=5", "cups", " share = 0.5 "])
    assert [str(mistake) for mistake in mistakes] == ["the flag --limit: cups needs a number: write cups=…"]
    found, more = in_force(INNER, said, complete=False)
    assert more == []
    assert (found["water_ml"].value, found["share"].value) == (5, 0.5)
    environment, _ = of_environment({"K_LIMITS": "water_ml=6 cups=4"}, [INNER])
    assert in_force(INNER, environment, complete=False)[0]["cups"] == InForce(4, "the variable K_LIMITS")
