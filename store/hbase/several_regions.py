"""Makes tables of several regions, through HBase's Thrift 2 gateway: the Thrift 1 gateway, which all else goes through,
has no call for it.

Invariant: nothing is made before it is known that the gateway is one, and leads to the HBase that the data go to.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib import resources
from typing import Any

import thriftpy2

from store.cells import Family
from store.errors import CannotPreSplit, StoreError
from store.hbase.connection import GatewayConnection
from store.hbase.failures import GatewayFailure, meaning_of
from store.hbase.gateway import Gateway
from store.hbase.gateways import gateways_at
from store.hbase.settings import PoolSettings
from store.hbase.thrift_types import AlreadyExists, GatewayIOError

_EXISTS = b"TableExistsException"


class TablesOfSeveralRegions:
    """Tables that are made through the Thrift 2 gateways at ``thrift2``, in the HBase behind those at ``thrift``.

    Both are addresses as ``store.hbase.addresses`` has them; an empty ``thrift2``: there are none. Raises what
    ``gateways_at`` does. Connected only while a table is made.
    """

    def __init__(self, thrift2: str, thrift: str, settings: PoolSettings) -> None:
        if thrift2:
            gateways_at(thrift2, settings)
        self._thrift2 = thrift2
        self._thrift = thrift
        self._settings = settings

    def create(self, table: str, families: Sequence[Family], split_keys: Sequence[bytes]) -> None:
        """Make ``table``, whose regions begin at ``split_keys``; all of it has been checked.

        Raises ``CannotPreSplit``, ``TableExists``, ``StoreError`` for what HBase refuses, ``StoreUnavailable``.
        """
        if not self._thrift2:
            raise CannotPreSplit(
                f"table {table!r} was to have {len(split_keys) + 1:,} regions, and HBase makes one with several only "
                "through its Thrift 2 gateway (hbase thrift2 start): say where that listens, as thrift2, --thrift2 or "
                "PYTHIA_THRIFT2; or make the table without, and split it in HBase's shell (pythia table splits)"
            )
        calls = _calls()
        descriptor, keys = _descriptor(calls, table, families), sorted(split_keys)

        def ask(connection: GatewayConnection) -> None:
            try:
                with connection.patient():
                    connection.client.createTable(descriptor, keys)
            except calls.TIOError as error:
                raise _as_thrift_1(error) from error

        with self._asking(self._thrift2) as gateway:
            self._require_fit(gateway)
            gateway.repeat(ask)

    def require_gateway(self) -> None:
        """Raise as ``create`` would for a gateway that cannot serve it; changes nothing."""
        with self._asking(self._thrift2) as gateway:
            self._require_fit(gateway)

    def _asking(self, addresses: str) -> closing[Gateway]:
        return closing(Gateway(addresses, self._settings, _calls().Thrift2))

    def _require_fit(self, gateway: Gateway) -> None:
        gateway.repeat(_require_thrift_2)
        with self._asking(self._thrift) as of_data:
            there, here = gateway.repeat(_cluster), of_data.repeat(_cluster)
        if there != here:
            raise CannotPreSplit(
                f"the Thrift 2 gateway at {self._thrift2} leads to another HBase ({there}) than the gateway of the "
                f"data at {self._thrift} ({here}): name one that leads to the same"
            )


@cache
def _calls() -> Any:
    """Thrift's module of what is asked, which takes some milliseconds to be made: not before a table is."""
    text = resources.files("store.hbase").joinpath("thrift2.thrift").read_text(encoding="utf-8")
    return thriftpy2.load_fp(io.StringIO(text), "pythia_thrift2_thrift")


def _require_thrift_2(connection: GatewayConnection) -> None:
    calls = _calls()
    if connection.client.getThriftServerType() != calls.TThriftServerType.TWO:
        raise CannotPreSplit(
            f"the gateway at {connection.address} is one of Thrift 1, which makes no table of several regions: name a "
            "Thrift 2 gateway (hbase thrift2 start) as thrift2"
        )


def _cluster(connection: GatewayConnection) -> str:
    name: bytes = connection.client.getClusterId()
    return name.decode("utf-8", "replace")


def _descriptor(calls: Any, table: str, families: Sequence[Family]) -> Any:
    """What is not said is by HBase's own defaults."""
    namespace, _, name = table.rpartition(":")
    return calls.TTableDescriptor(
        tableName=calls.TTableName(ns=namespace.encode() if namespace else None, qualifier=name.encode()),
        columns=[
            calls.TColumnFamilyDescriptor(
                name=family.name.encode(), maxVersions=family.versions_max, timeToLive=family.lives_seconds_max
            )
            for family in families
        ],
    )


def _as_thrift_1(error: Any) -> Exception:
    """What the Thrift 1 gateway would have said. This one says, too, of what it does not know that it is final."""
    message: bytes = error.message or b""
    kind = AlreadyExists if _EXISTS in message.partition(b"\n")[0] else GatewayIOError
    answer: Exception = kind(message=message)
    if isinstance(meaning := meaning_of(answer), GatewayFailure) and error.canRetry is False:
        return StoreError(f"HBase refuses it: {meaning}")
    return answer
