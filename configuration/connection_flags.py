"""The flags of commands that say where an installation and its services are: of the same name and form in all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from configuration.defaults import DEFAULT_ROOT, THRIFT2_TEXT, THRIFT_TEXT

Command = TypeVar("Command", bound=Callable[..., Any])

_ADDRESSES = "HOST:PORT[,…]"
_PLACES = ("zookeeper", "oracle")


def zookeeper_flag(text: str, *, required: bool = True) -> Callable[[Command], Command]:
    """``--zookeeper``; empty where it is not required and not given. ``text`` says what is looked for there."""
    return _flag("--zookeeper", _ADDRESSES, "PYTHIA_ZOOKEEPER", f"ZooKeeper, {text}", None if required else "")


def oracle_flag(text: str) -> Callable[[Command], Command]:
    """``--oracle``, which may be given in place of ``--zookeeper``; empty where it is not."""
    return _flag("--oracle", "HOST:PORT", "PYTHIA_ORACLE", f"In its place: {text}", "")


def one_of(zookeeper: str, oracle: str) -> tuple[str, str]:
    """The two of a command, ``--zookeeper`` and ``--oracle``: a flag has precedence over the other one's variable."""
    context = click.get_current_context()
    is_flag = {name: context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in _PLACES}
    if zookeeper and oracle and is_flag["zookeeper"] != is_flag["oracle"]:
        return (zookeeper, "") if is_flag["zookeeper"] else ("", oracle)
    return zookeeper, oracle


def thrift_flag(command: Command) -> Command:
    """``--thrift``, required."""
    return _flag("--thrift", _ADDRESSES, "PYTHIA_THRIFT", THRIFT_TEXT, None)(command)


def thrift2_flag(command: Command) -> Command:
    """``--thrift2``, for commands that make tables; empty where it is not given."""
    return _flag("--thrift2", _ADDRESSES, "PYTHIA_THRIFT2", THRIFT2_TEXT, "")(command)


def root_flag(command: Command) -> Command:
    """``--root``."""
    text = "Znode of the installation; its tables in HBase are named after it."
    return _flag("--root", "ZNODE", "PYTHIA_ROOT", text, DEFAULT_ROOT)(command)


def _flag(name: str, metavar: str, variable: str, text: str, default: str | None) -> Callable[[Command], Command]:
    """Required where there is no default."""
    # Click takes even a default of None for a value that was given.
    given: dict[str, Any] = {"required": True} if default is None else {"default": default}
    return click.option(
        name, metavar=metavar, envvar=variable, show_envvar=True, show_default=bool(default), help=text, **given
    )
