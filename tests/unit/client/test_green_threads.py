"""Programs whose threads or sockets gevent or eventlet has replaced, as either says of itself."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from client import ClientSettings, InvalidRequest, TransactionManager

SETTINGS = ClientSettings(zookeeper="127.0.0.1:1", thrift="127.0.0.1:1")


def say(patch: pytest.MonkeyPatch, module: str, question: str, *replaced: str) -> None:
    """Have a library be there that has replaced these modules."""
    patch.setitem(sys.modules, module, SimpleNamespace(**{question: replaced.__contains__}))


@pytest.mark.parametrize(
    ("module", "question", "replaced"),
    [
        ("gevent.monkey", "is_module_patched", ["threading", "socket"]),
        ("gevent.monkey", "is_module_patched", ["socket"]),
        ("gevent.monkey", "is_module_patched", ["threading"]),
        ("eventlet.patcher", "is_monkey_patched", ["thread", "socket"]),
        ("eventlet.patcher", "is_monkey_patched", ["socket"]),
        ("eventlet.patcher", "is_monkey_patched", ["thread"]),
    ],
)
def test_who_replaced_threads_or_sockets_is_named_and_nothing_is_connected(
    monkeypatch: pytest.MonkeyPatch, module: str, question: str, replaced: list[str]
) -> None:
    say(monkeypatch, module, question, *replaced)
    with pytest.raises(InvalidRequest, match=f"^{module.partition('.')[0]} has replaced Python's threads or sockets"):
        TransactionManager.connect(SETTINGS)


def test_one_that_is_there_and_has_replaced_neither_is_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "gevent.monkey", "is_module_patched", "subprocess")
    say(monkeypatch, "eventlet.patcher", "is_monkey_patched", "time")
    TransactionManager.connect(SETTINGS).close()
