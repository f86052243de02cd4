"""What the commands for tables share: where the services are, how a file is read, what an error looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from client.errors import InvalidRequest, PythiaError
from client.manager import TransactionManager
from client.settings import ClientSettings
from client.tables.errors import UnreadableFile
from client.tables.files import FORMATS, CsvDialect, DataFile, FileFormat, format_of
from store import StoreError

UNREADABLE = 2

Command = TypeVar("Command", bound=Callable[..., Any])

FILE = click.Path(dir_okay=False, path_type=Path)

format_option = click.option(
    "--format", "file_format", type=click.Choice(FORMATS), help="Of the file; by default what its name ends with."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")

_CONNECTION = (
    click.option("--zookeeper", required=True, metavar="HOST:PORT[,…]", envvar="PYTHIA_ZOOKEEPER", show_envvar=True,
                 help="ZooKeeper, where the primary oracle is found."),
    click.option("--thrift", required=True, metavar="HOST:PORT[,…]", envvar="PYTHIA_THRIFT", show_envvar=True,
                 help="HBase's Thrift gateway, or several of them."),
    click.option("--root", default="/pythia", show_default=True, envvar="PYTHIA_ROOT", show_envvar=True,
                 help="Znode of the installation."),
)  # fmt: skip
_READING = (
    format_option,
    click.option("--delimiter", default=",", show_default=True, help="What stands between the fields of a CSV file."),
    click.option("--null", "nulls", multiple=True, metavar="TEXT",
                 help="In a CSV file, an unquoted TEXT is a null, as an empty field is; may be given several times."),
)  # fmt: skip


class Refused(click.ClickException):
    """A file that cannot be read or written."""

    exit_code = UNREADABLE


def connecting(command: Command) -> Command:
    """Give a command the options of ``managed``."""
    return _with_options(command, _CONNECTION)


def reading_files(command: Command) -> Command:
    """Give a command the options of ``data_file``."""
    return _with_options(command, _READING)


def _with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def data_file(path: Path, file_format: FileFormat | None, delimiter: str, nulls: Sequence[str]) -> DataFile:
    """A file to read. Raises ``UnreadableFile`` where its format is not known, ``InvalidRequest``."""
    if len(delimiter) != 1:
        raise InvalidRequest(f"--delimiter is one character, not {delimiter!r}")
    return DataFile(path, format_of(path, file_format), CsvDialect(delimiter, tuple(nulls)))


def names_of(text: str) -> tuple[str, ...]:
    """Column names with commas between. Raises ``InvalidRequest``."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidRequest(f"column names are given with commas between, not as {text!r}")
    return names


@contextmanager
def managed(zookeeper: str, thrift: str, root: str) -> Iterator[TransactionManager]:
    """A manager for one command; see ``explained``."""
    with explained(), TransactionManager.connect(ClientSettings(zookeeper, thrift, root)) as manager:
        yield manager


@contextmanager
def explained() -> Iterator[None]:
    """What an operator can put right is told in one line, without a traceback."""
    try:
        yield
    except UnreadableFile as error:
        raise Refused(str(error)) from error
    except (PythiaError, StoreError) as error:
        raise click.ClickException(str(error)) from error
