"""Where the services are, and the limits a client keeps; one frozen object that travels to Spark tasks as it is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from access.services import settings_of_services
from client.errors import InvalidRequest, InvalidSettings
from configuration import Contradiction, Section, setting, settings_of
from configuration.defaults import DEFAULT_ROOT, SHADOW_CELLS, THRIFT2_TEXT, THRIFT_TEXT
from configuration.way_settings import way_contradictions, way_setting
from lease import ZnodePaths
from lease.ensemble import parse_ensemble
from store.hbase.addresses import parse_addresses

CREDENTIALS = ("token_file", "tls_authority_file", "tls_certificate_file", "tls_key_file", "tls_server_name")
"""The settings that say where it is what a client shows of itself to oracles."""
WAYS = settings_of_services()
"""The same for HBase's gateway and ZooKeeper, where these speak TLS or ask for Kerberos."""
BULK_SHADOW_CELLS = ("written", "deferred", "none")
"""What there is to choose from for the shadow cells of bulk writes; the first one by default."""
DEADLINE_MS_MAX = 86_400_000
"""Of ``deadline_ms``, and of what a call is given in its place."""


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How to reach one installation of Pythia. Raises ``InvalidSettings`` for settings that cannot work."""

    zookeeper: str = setting(
        "", "HOST:PORT[,…]", "ZooKeeper, where the primary is found.", environment="PYTHIA_ZOOKEEPER"
    )
    thrift: str = setting(
        "",
        "HOST:PORT[,…]",
        THRIFT_TEXT,
        environment="PYTHIA_THRIFT",
        required=True,
    )
    root: str = setting(
        DEFAULT_ROOT, "ZNODE", "Znode under which the installation lives.", environment="PYTHIA_ROOT", check=ZnodePaths
    )
    request_timeout_ms: int = setting(
        5_000, "ms", "How long one request may take before another way is tried.", least=1, most=3_600_000
    )
    deadline_ms: int = setting(
        30_000,
        "ms",
        "How long a call may wait for the oracle, failovers included; reading and writing cells has the same limit "
        "once more, from the first failure on.",
        least=1,
        most=DEADLINE_MS_MAX,
    )
    transaction_bytes_max: int = setting(
        256 * 2**20,
        "bytes",
        "What one transaction may hold in this process's memory before it commits.",
        least=1,
        most=2**40,
    )
    outcome_cache_entries_max: int = setting(
        100_000, "transactions", "Whose commit timestamps are remembered, about 150 bytes each.", least=1, most=2**32
    )
    heartbeat_interval_ms: int = setting(
        15_000,
        "ms",
        "How often the oracle is told which transactions are in use; well below its transaction_life_ms.",
        least=10,
        most=86_400_000,
    )
    oracle_requests_max: int = setting(
        100_000,
        "requests",
        "Of this process that may wait to be sent to the oracle, over all its threads and tasks.",
        least=1,
        most=10_000_000,
    )
    store_connections_max: int = setting(16, "connections", "To the gateway at once.", least=1, most=10_000)
    heal: bool = setting(True, "", "Whether readers write missing shadow cells.")
    shadow_cells: str = setting(
        SHADOW_CELLS[0],
        "",
        "Whether a commit returns when the shadow cells of what was put are written, or before, and threads of the "
        "manager write them: sooner for who commits, and a question more for who reads meanwhile elsewhere.",
        choices=SHADOW_CELLS,
    )
    shadow_writers_max: int = setting(
        4,
        "threads",
        "That write the shadow cells of one bulk write, or those in the background.",
        least=1,
        most=64,
    )
    bulk_shadow_cells: str = setting(
        BULK_SHADOW_CELLS[0],
        "",
        "Whether a commit writes the shadow cells of its bulk writes, leaves them to manager.finish_bulk_writes or a "
        "vacuum, or does without, and its record stays in the commit table; readers are right all the same.",
        choices=BULK_SHADOW_CELLS,
    )
    oracle: str = setting(
        "", "HOST:PORT", "An oracle that serves alone, in place of zookeeper.", environment="PYTHIA_ORACLE"
    )
    token_file: str = setting(
        "",
        "FILE",
        "Holds the token by which oracles know this program, and nothing else; without it PYTHIA_TOKEN may be the "
        "token.",
        environment="PYTHIA_TOKEN_FILE",
    )
    tls_authority_file: str = setting(
        "", "FILE", "Who signs the oracles' certificates (PEM); with it oracles are spoken to by TLS only."
    )
    tls_certificate_file: str = setting("", "FILE", "The certificate to show where oracles ask for one (PEM).")
    tls_key_file: str = setting("", "FILE", "Its key (PEM, no password); not given: in the certificate's file.")
    tls_server_name: str = setting(
        "", "NAME", "Whom the oracles' certificates have to name; not given: the host that is dialled."
    )
    thrift_tls_authority_file: str = way_setting("thrift_tls_authority_file")
    thrift_tls_certificate_file: str = way_setting("thrift_tls_certificate_file")
    thrift_tls_key_file: str = way_setting("thrift_tls_key_file")
    thrift_tls_server_name: str = way_setting("thrift_tls_server_name")
    thrift_kerberos_service: str = way_setting("thrift_kerberos_service")
    thrift_kerberos_principal: str = way_setting("thrift_kerberos_principal")
    thrift_kerberos_keytab_file: str = way_setting("thrift_kerberos_keytab_file")
    zookeeper_tls_authority_file: str = way_setting("zookeeper_tls_authority_file")
    zookeeper_tls_certificate_file: str = way_setting("zookeeper_tls_certificate_file")
    zookeeper_tls_key_file: str = way_setting("zookeeper_tls_key_file")
    zookeeper_tls_server_name: str = way_setting("zookeeper_tls_server_name")
    zookeeper_kerberos_service: str = way_setting("zookeeper_kerberos_service")
    zookeeper_kerberos_principal: str = way_setting("zookeeper_kerberos_principal")
    zookeeper_kerberos_keytab_file: str = way_setting("zookeeper_kerberos_keytab_file")
    thrift2: str = setting("", "HOST:PORT[,…]", THRIFT2_TEXT, environment="PYTHIA_THRIFT2")

    def __post_init__(self) -> None:
        for name in ("zookeeper", "thrift", "thrift2", "root", "oracle", *CREDENTIALS, *WAYS):
            if not isinstance(getattr(self, name), str):
                raise InvalidSettings(f"{name} is text, not {getattr(self, name)!r}")
        for _, reason in _contradictions({each.name: getattr(self, each.name) for each in settings_of(type(self))}):
            raise InvalidSettings(reason)
        if not self.thrift:
            raise InvalidSettings("thrift is missing: the address 'host:port' of HBase's Thrift gateway")
        if self.oracle:
            _check_address("oracle", self.oracle)
        for name, parse in (
            ("zookeeper", parse_ensemble),
            ("thrift", parse_addresses),
            ("thrift2", parse_addresses),
        ):
            try:
                if getattr(self, name):
                    parse(getattr(self, name))
            except ValueError as error:
                raise InvalidSettings(f"{name}: {error}") from error
        try:
            ZnodePaths(self.root)
        except ValueError as error:
            raise InvalidSettings(str(error)) from error
        for each in settings_of(type(self)):
            value = getattr(self, each.name)
            if (
                each.least is not None
                and each.most is not None
                and (type(value) is not int or not each.least <= value <= each.most)
            ):
                limits = f"from {each.least:,} to {each.most:,}"
                raise InvalidSettings(f"{each.name} is a whole number {limits}, not {value!r}")
            if each.choices and value not in each.choices:
                raise InvalidSettings(f"{each.name} is one of {', '.join(each.choices)}, not {value!r}")
        if not isinstance(self.heal, bool):
            raise InvalidSettings(f"heal is true or false, not {self.heal!r}")

    def to_json(self) -> str:
        """The settings as text; ``from_json`` reads it back."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ClientSettings:
        """Read what ``to_json`` wrote. Raises ``InvalidRequest`` where that is not what it is given."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**parse_object(text, "client settings", names, needed={"zookeeper", "thrift"}))


def _contradictions(settings: Mapping[str, Any]) -> Iterator[Contradiction]:
    if settings["oracle"] and settings["zookeeper"]:
        yield Contradiction(("oracle", "zookeeper"), "either zookeeper or oracle says where the oracle is, not both")
    if not settings["oracle"] and not settings["zookeeper"]:
        yield Contradiction((), "either zookeeper or oracle has to say where the oracle is: neither is there")
    yield from way_contradictions(settings)


CLIENT = Section(
    "client",
    "A program or Spark job that uses the oracle: `client.configured.load_settings`.",
    settings_of(ClientSettings, environment="PYTHIA_CLIENT_"),
    _contradictions,
)
SECTIONS = (CLIENT,)


def parse_object(text: str, what: str, names: set[str] | None, *, needed: set[str]) -> dict[str, Any]:
    """A JSON object with the ``needed`` names and no others than ``names`` (``None``: whatever else).

    Raises ``InvalidRequest`` that says what it should have been.
    """
    try:
        parsed = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"{what}: not the JSON text that to_json() gives: {error}") from error
    if not isinstance(parsed, dict):
        raise InvalidRequest(f"{what}: a JSON object is needed, not {type(parsed).__name__}")
    unknown, missing = sorted(set(parsed) - (names or set(parsed))), sorted(needed - set(parsed))
    if unknown or missing:
        wrong = [f"unknown {', '.join(unknown)}"] * bool(unknown) + [f"missing {', '.join(missing)}"] * bool(missing)
        raise InvalidRequest(f"{what}: {'; '.join(wrong)}; known are {', '.join(sorted(names or needed))}")
    return parsed


def _check_address(name: str, address: str) -> None:
    host, colon, port = address.strip().rpartition(":")
    numeric = port.isascii() and port.isdigit() and len(port) <= len("65535")
    if not host or "," in host or not colon or not numeric or not 0 < int(port) < 65_536:
        raise InvalidSettings(f"{name}: an address is 'host:port', not {address!r}")
