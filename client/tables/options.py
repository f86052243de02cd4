"""What the commands for tables share: how files and columns are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from client.command_line import explained
from client.errors import InvalidRequest
from client.tables.files import FORMATS, CsvDialect, DataFile, FileFormat, format_of
from client.tables.steps import ROWS_PER_TRANSACTION_MAX

ROWS_PER_TRANSACTION = 100_000
"""Where nothing asks for one transaction."""

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)

format_option = click.option(
    "--format", "file_format", type=click.Choice(FORMATS), help="Of the file; by default what its name ends with."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
rows_per_transaction_option = click.option(
    "--rows-per-transaction", type=click.IntRange(1, ROWS_PER_TRANSACTION_MAX), metavar="N",
    default=ROWS_PER_TRANSACTION, show_default=True, help="Land N rows in each transaction.",
)  # fmt: skip

families_option = click.option(
    "--family-of", "families", multiple=True, metavar="NAME=FAMILY",
    help="Another family for this column; once for each.",
)  # fmt: skip

_READING = (
    format_option,
    click.option("--delimiter", default=",", show_default=True, metavar="CHARACTER",
                 help="What stands between the fields of a CSV file: one ASCII character."),
    click.option("--null", "nulls", multiple=True, metavar="TEXT",
                 help="In a CSV file, an unquoted TEXT is a null, as an empty field is; may be given several times."),
)  # fmt: skip


def reading_files(command: Command) -> Command:
    """Give a command the options of ``data_file``."""
    for option in reversed(_READING):
        command = option(command)
    return command


def data_file(path: Path, file_format: FileFormat | None, delimiter: str, nulls: Sequence[str]) -> DataFile:
    """A file to read. Raises ``UnreadableFile`` where its format is not known, ``InvalidRequest``."""
    if len(delimiter) != 1 or not "\0" < delimiter <= "\x7f":
        raise InvalidRequest(f"--delimiter is one ASCII character, not {delimiter!r}")
    return DataFile(path, format_of(path, file_format), CsvDialect(delimiter, tuple(nulls)))


def names_of(text: str) -> tuple[str, ...]:
    """Column names with commas between. Raises ``InvalidRequest``."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidRequest(f"column names are given with commas between, not as {text!r}")
    return names


@contextmanager
def as_usage_errors() -> Iterator[None]:
    """Raise ``click.UsageError`` for what a command line names that cannot be; see ``explained`` for the rest."""
    with explained():
        try:
            yield
        except InvalidRequest as error:
            raise click.UsageError(str(error)) from error
