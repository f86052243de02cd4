"""What no adapter ever sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import ROW_KEY_BYTES_MAX, Family, InvalidCell, KeyRange, RowPut, validation
from store.columns import CellColumns, check_columns

families = st.sampled_from([b"f", b"g", b"h"])
columns = st.builds(lambda family, qualifier: family + b":" + qualifier, families, st.binary(max_size=2))


@pytest.mark.parametrize("name", ["t", "T_1", "a.b-c", "space:t", "0", "x" * 200])
def test_table_names_that_hbase_takes(name: str) -> None:
    validation.check_table(name)


@pytest.mark.parametrize(
    "name", ["", ".t", "-t", "a b", "a/b", "../t", "ns:", ":t", "a:b:c", "é", "t\n", "t\x00", "x" * 201, "ns.a:t"]
)
def test_table_names_that_it_does_not(name: str) -> None:
    with pytest.raises(InvalidCell, match="a table name"):
        validation.check_table(name)


@pytest.mark.parametrize("name", [None, b"t", 5, ["t"]])
def test_names_that_are_no_text(name: str) -> None:
    with pytest.raises(InvalidCell, match="a table name is text, not a "):
        validation.check_table(name)
    with pytest.raises(InvalidCell, match="a column family's name is text, not a "):
        validation.check_families([Family("f"), Family(name)])


@pytest.mark.parametrize("name", ["default:t", "default:default"])
def test_a_table_has_one_name(name: str) -> None:
    with pytest.raises(InvalidCell, match="a table has one name here, so leave it out"):
        validation.check_table(name)


@pytest.mark.parametrize("name", ["default", "default.t", "defaults:t"])
def test_names_that_only_look_like_a_second_one(name: str) -> None:
    validation.check_table(name)


@pytest.mark.parametrize(
    "given_families",
    [[], [Family("")], [Family("a:b")], [Family(".f")], [Family("f"), Family("f", 3)], [Family("f", 0)], [Family("é")]],
)
def test_families_that_make_no_table(given_families: list[Family]) -> None:
    with pytest.raises(InvalidCell):
        validation.check_families(given_families)


@given(st.binary(max_size=40))
def test_a_column_is_one_that_names_a_family(column: bytes) -> None:
    family, colon, _ = column.partition(b":")
    if family and colon:
        validation.check_column(column)
    else:
        with pytest.raises(InvalidCell, match="family:qualifier"):
            validation.check_column(column)


@given(st.lists(families | columns, min_size=1, max_size=8))
def test_a_choice_means_the_same_without_doubles(choices: list[bytes]) -> None:
    kept = validation.chosen(choices)
    assert len(set(kept)) == len(kept)
    assert set(kept) <= set(choices)
    whole = {choice for choice in kept if b":" not in choice}
    assert whole == {choice for choice in choices if b":" not in choice}
    assert not any(b":" in choice and validation.family_of(choice) in whole for choice in kept)
    assert all(choice in kept or validation.family_of(choice) in whole for choice in choices)


@pytest.mark.parametrize("row", [b"", b"x" * (ROW_KEY_BYTES_MAX + 1), "text", None, 7, bytearray(b"r")])
def test_rows_that_are_none(row: object) -> None:
    with pytest.raises(InvalidCell, match="a row key is 1 to"):
        validation.check_row(row)  # type: ignore[arg-type]


def test_a_range_begins_or_ends_right_after_the_longest_key() -> None:
    after = bytes(ROW_KEY_BYTES_MAX) + b"\x00"
    validation.check_range(KeyRange(after, b""))
    validation.check_range(KeyRange(b"", after))


@pytest.mark.parametrize("end", [bytes(ROW_KEY_BYTES_MAX + 2), "text", None])
def test_ends_of_ranges_that_are_none(end: bytes) -> None:
    for key_range in (KeyRange(end, b""), KeyRange(b"", end)):
        with pytest.raises(InvalidCell, match="an end of a key range is 0 to 32,513 bytes"):
            validation.check_range(key_range)


@pytest.mark.parametrize(
    ("put", "text"),
    [
        (RowPut(b"r", {}), "no columns"),
        (RowPut(b"r", {b"f": b"1"}), "family:qualifier"),
        (RowPut(b"r", {b"f:" + b"q" * 32_000: b"1"}), "a column is at most"),
        (RowPut(b"r", {b"f:a": b"x" * (validation.VALUE_BYTES_MAX + 1)}), "a value is at most"),
        (RowPut(b"r", {b"f:a": "text"}), "a value is at most .* not a str"),  # type: ignore[dict-item]
        (RowPut(b"r", {b"f:%d" % number: b"x" * validation.VALUE_BYTES_MAX for number in range(7)}), "in several"),
    ],
)
def test_puts_that_cannot_be_held(put: RowPut, text: str) -> None:
    with pytest.raises(InvalidCell, match=text):
        validation.check_puts([RowPut(b"good", {b"f:a": b"1"}), put], 5)


def test_the_largest_cell_fits_into_hbases_limit() -> None:
    overhead = 64
    largest = ROW_KEY_BYTES_MAX + validation.COLUMN_BYTES_MAX + validation.VALUE_BYTES_MAX + overhead
    assert largest <= 10 * 2**20


def test_an_error_shows_little_of_a_huge_argument() -> None:
    with pytest.raises(InvalidCell) as caught:
        validation.check_column(b"x" * 10**6)
    assert len(str(caught.value)) < 300


def test_of_many_rows_written_at_once_the_one_that_is_too_large_is_named() -> None:
    large = bytes(validation.VALUE_BYTES_MAX)
    value = CellColumns.of_puts([RowPut(b"a", {b"f:a": b"1"}), RowPut(b"b", {b"f:b": large + b"1", b"f:a": b"1"})])
    with pytest.raises(InvalidCell, match=r"a value is at most .* column b'f:b' in row b'b' of table 't'"):
        check_columns("t", value, 1)
    columns = {b"f:%d" % index: large for index in range(validation.ROW_PUT_BYTES_MAX // len(large) + 1)}
    row = CellColumns.of_puts([RowPut(b"c", {b"f:0": b"1"}), RowPut(b"d", columns)])
    with pytest.raises(InvalidCell, match=r"one row's put is at most .* row b'd' of table 't'"):
        check_columns("t", row, 1)
