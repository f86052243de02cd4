"""What can be set of `pythia tso serve`, by file, environment or flag, and the settings that come of it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from access.exposure import exposures, incomplete
from access.server_files import ServerFiles
from configuration import Contradiction, Section, setting, settings_of
from configuration.checking import DEFAULT_ORIGIN, InForce, Mistake, Wrong, in_force
from configuration.defaults import DEFAULT_ROOT, SHADOW_CELLS, THRIFT_TEXT
from configuration.rest_limits import REST_LIMITS
from configuration.rooms import known_tables
from configuration.sources import of_environment, of_file, of_flags, of_pairs, values_of_pairs
from configuration.way_settings import way_contradictions, way_setting
from lease import InvalidLeaseSettings, LeaseSettings, ZnodePaths
from lease.ensemble import parse_ensemble
from lease.records import LEASE_MS_MAX, LEASE_MS_MIN, check_addresses, check_name
from lease.rules import RENEWALS_PER_LEASE_MAX
from logs.lines import FORMATS, LEVELS
from store.hbase.addresses import parse_addresses
from tso.settings import (
    LIMITS,
    Limits,
    ServeSettings,
    lease_settings,
    listens_everywhere,
    names_of,
    parse_listen,
)

_LIMIT_FLAG = "--limit"
_REST_LIMIT_FLAG = "--rest-limit"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """One oracle process, as an operator sets it."""

    name: str = setting(
        "",
        "NAME",
        "This process, unique in the installation; not given: host and process id.",
        environment="PYTHIA_NAME",
        check=partial(check_name, "name"),
    )
    zookeeper: str = setting(
        "",
        "HOST:PORT[,…]",
        "ZooKeeper, where lease and members are kept.",
        environment="PYTHIA_ZOOKEEPER",
        check=parse_ensemble,
    )
    zookeeper_credentials_file: str = setting(
        "",
        "FILE",
        "Holds user:password by which ZooKeeper knows this process: with it nobody else may change the znodes. Without "
        "it PYTHIA_ZOOKEEPER_CREDENTIALS may be that.",
        environment="PYTHIA_ZOOKEEPER_CREDENTIALS_FILE",
    )
    zookeeper_tls_authority_file: str = way_setting("zookeeper_tls_authority_file")
    zookeeper_tls_certificate_file: str = way_setting("zookeeper_tls_certificate_file")
    zookeeper_tls_key_file: str = way_setting("zookeeper_tls_key_file")
    zookeeper_tls_server_name: str = way_setting("zookeeper_tls_server_name")
    zookeeper_kerberos_service: str = way_setting("zookeeper_kerberos_service")
    zookeeper_kerberos_principal: str = way_setting("zookeeper_kerberos_principal")
    zookeeper_kerberos_keytab_file: str = way_setting("zookeeper_kerberos_keytab_file")
    insecure_zookeeper_unprotected: bool = setting(
        False,
        "",
        "Take part though anybody may change the znodes: while the processes of an installation get credentials.",
        environment="PYTHIA_INSECURE_ZOOKEEPER_UNPROTECTED",
    )
    alone: bool = setting(
        False,
        "",
        "Serve without ZooKeeper and without failover, as the only process. Never start two.",
        environment="PYTHIA_ALONE",
    )
    thrift: str = setting(
        "",
        "HOST:PORT[,…]",
        THRIFT_TEXT,
        environment="PYTHIA_THRIFT",
        check=parse_addresses,
        required=True,
    )
    thrift_tls_authority_file: str = way_setting("thrift_tls_authority_file")
    thrift_tls_certificate_file: str = way_setting("thrift_tls_certificate_file")
    thrift_tls_key_file: str = way_setting("thrift_tls_key_file")
    thrift_tls_server_name: str = way_setting("thrift_tls_server_name")
    thrift_kerberos_service: str = way_setting("thrift_kerberos_service")
    thrift_kerberos_principal: str = way_setting("thrift_kerberos_principal")
    thrift_kerberos_keytab_file: str = way_setting("thrift_kerberos_keytab_file")
    listen: str = setting(
        "127.0.0.1:5480",
        "HOST:PORT",
        "Where to listen; port 0 lets the system choose.",
        environment="PYTHIA_LISTEN",
        check=parse_listen,
    )
    advertise: str = setting(
        "",
        "HOST:PORT",
        "Where clients reach this process, if not where it listens.",
        environment="PYTHIA_ADVERTISE",
        check=lambda address: check_addresses((address,)),
    )
    rest_listen: str = setting(
        "",
        "HOST:PORT",
        "Serve REST there, in a process beside; not given: no REST; port 0 lets the system choose.",
        environment="PYTHIA_REST_LISTEN",
        check=parse_listen,
    )
    rest_advertise: str = setting(
        "",
        "HOST:PORT",
        "Where clients reach REST, if not where it listens.",
        environment="PYTHIA_REST_ADVERTISE",
        check=lambda address: check_addresses((address,)),
    )
    rest_names: str = setting(
        "",
        "NAME[,…]",
        "Host names by which REST is asked beside its own, such as a balancer's; needed where neither tokens nor TLS "
        "keep out web pages whose name was made to point here.",
        environment="PYTHIA_REST_NAMES",
        check=names_of,
    )
    rest_shadow_cells: str = setting(
        SHADOW_CELLS[0],
        "",
        "Whether REST answers a commit when its shadow cells are written, or before, and threads of it write them: "
        "sooner for who commits, and a question more for who reads meanwhile elsewhere.",
        choices=SHADOW_CELLS,
        environment="PYTHIA_REST_SHADOW_CELLS",
    )
    tokens_file: str = setting(
        "",
        "FILE",
        "Who may do what (pythia token); not given: everybody may do everything. Read again when it changes.",
        environment="PYTHIA_TOKENS_FILE",
    )
    tls_certificate_file: str = setting(
        "",
        "FILE",
        "The certificate for TLS (PEM, with those that sign it), of the frames' port and of REST; not given: no TLS. "
        "Read again when it changes.",
        environment="PYTHIA_TLS_CERTIFICATE_FILE",
    )
    tls_key_file: str = setting("", "FILE", "Its key (PEM, without a password).", environment="PYTHIA_TLS_KEY_FILE")
    tls_client_authority_file: str = setting(
        "",
        "FILE",
        "Who signs clients' certificates (PEM): every client must show one.",
        environment="PYTHIA_TLS_CLIENT_AUTHORITY_FILE",
    )
    rest_token_file: str = setting(
        "",
        "FILE",
        "Holds the token with which REST goes to whichever oracle is primary.",
        environment="PYTHIA_REST_TOKEN_FILE",
    )
    rest_tls_authority_file: str = setting(
        "",
        "FILE",
        "Who signs the oracles' certificates (PEM), for REST's way to them.",
        environment="PYTHIA_REST_TLS_AUTHORITY_FILE",
    )
    insecure_listen_without_authentication: bool = setting(
        False,
        "",
        "Listen beyond this machine though everybody there may do everything.",
        environment="PYTHIA_INSECURE_LISTEN_WITHOUT_AUTHENTICATION",
    )
    insecure_tokens_without_tls: bool = setting(
        False,
        "",
        "Listen beyond this machine though tokens go there in clear text.",
        environment="PYTHIA_INSECURE_TOKENS_WITHOUT_TLS",
    )
    root: str = setting(
        DEFAULT_ROOT,
        "ZNODE",
        "Znode of this installation; its tables in HBase are named after it.",
        environment="PYTHIA_ROOT",
        check=ZnodePaths,
    )
    lease_ms: int = setting(
        2000,
        "ms",
        "After which a standby may take over from a primary that fell silent.",
        least=LEASE_MS_MIN,
        most=LEASE_MS_MAX,
        because="after a crash nobody serves for as long as it lasts",
        environment="PYTHIA_LEASE_MS",
    )
    renewals_per_lease: int = setting(
        4,
        "renewals",
        "How often the primary renews its lease within that time.",
        least=2,
        most=RENEWALS_PER_LEASE_MAX,
        environment="PYTHIA_RENEWALS_PER_LEASE",
    )
    log_level: str = setting(
        "info", "", "How much to log, to standard error.", choices=LEVELS, environment="PYTHIA_LOG_LEVEL"
    )
    log_format: str = setting(
        "text", "", "Lines for people, or one JSON object a line.", choices=FORMATS, environment="PYTHIA_LOG_FORMAT"
    )


_OF_REST: Final = {
    "rest_advertise": "",
    "rest_names": "",
    "rest_shadow_cells": SHADOW_CELLS[0],
    "rest_token_file": "",
    "rest_tls_authority_file": "",
}
"""What says something of REST, and what it is where it says nothing."""


def _contradictions(options: Mapping[str, Any]) -> Iterator[Contradiction]:
    if options["zookeeper"] and options["alone"]:
        yield Contradiction(("zookeeper", "alone"), "give either --zookeeper or --alone, not both")
    if not options["zookeeper"] and not options["alone"]:
        yield Contradiction(("zookeeper", "alone"), "give either --zookeeper or --alone: neither is there")
    if listens_everywhere(options["listen"]) and not options["advertise"]:
        yield Contradiction(
            ("listen", "advertise"),
            f"listening on every interface ({options['listen']}) says nothing about how clients reach this process: "
            "name an address to advertise",
        )
    for name, nothing in _OF_REST.items():
        if options[name] != nothing and not options["rest_listen"]:
            yield Contradiction((name,), f"{name} is for REST, but there is no REST: give rest_listen, too")
    if options["rest_listen"] and listens_everywhere(options["rest_listen"]) and not options["rest_advertise"]:
        yield Contradiction(
            ("rest_listen", "rest_advertise"),
            f"REST on every interface ({options['rest_listen']}) says nothing about how clients reach it: name an "
            "address to advertise",
        )
    hosts = {name: parse_listen(options[name])[0] for name in ("listen", "rest_listen") if options[name]}
    yield from way_contradictions(options)
    for names, reason in (*exposures(options, hosts), *incomplete(options)):
        yield Contradiction(names, reason)
    try:
        LeaseSettings(options["lease_ms"], options["renewals_per_lease"])
    except InvalidLeaseSettings as error:
        yield Contradiction(("lease_ms", "renewals_per_lease"), str(error))


ORACLE = Section("oracle", "One oracle process: `pythia tso serve`.", settings_of(ServeOptions), _contradictions)
SECTIONS = (ORACLE, LIMITS, REST_LIMITS)


class Chosen(NamedTuple):
    """What an oracle process is to run with."""

    options: ServeOptions
    limits: Limits
    rest_limits: tuple[str, ...]
    """Those of the REST process that are not at their defaults, as ``NAME=VALUE``."""
    changed: str
    """What is not at its default, and why, in one line."""

    def settings(self) -> ServeSettings:
        """The same for the process."""
        options = self.options
        host, port = parse_listen(options.listen)
        return ServeSettings(
            name=options.name or default_name(),
            zookeeper=options.zookeeper,
            thrift=options.thrift,
            listen_host=host,
            listen_port=port,
            advertise=options.advertise or None,
            rest_advertise=options.rest_advertise or None,
            root=options.root,
            tokens_file=options.tokens_file,
            tls=ServerFiles(options.tls_certificate_file, options.tls_key_file, options.tls_client_authority_file)
            if options.tls_certificate_file
            else None,
            lease=lease_settings(options.lease_ms, options.renewals_per_lease),
            limits=self.limits,
        )


def choose(
    file: str | None,
    environment: Mapping[str, str],
    flags: Mapping[str, Any],
    limits: Sequence[str],
    rest_limits: Sequence[str] = (),
) -> Chosen:
    """Of a file, the environment and the flags, each before the one in front of it. Raises ``Wrong``, of all mistakes.

    ``limits``, ``rest_limits``: as ``NAME=VALUE``.
    """
    said, mistakes = ([], []) if file is None else of_file(file, SECTIONS, known_tables())
    from_environment, wrong = of_environment(environment, SECTIONS)
    from_limits, wrong_limits = of_pairs(LIMITS, _LIMIT_FLAG, limits)
    from_rest_limits, wrong_rest_limits = of_pairs(REST_LIMITS, _REST_LIMIT_FLAG, rest_limits)
    said = [*said, *from_environment, *of_flags(ORACLE, flags), *from_limits, *from_rest_limits]
    oracle, wrong_options = in_force(ORACLE, said, complete=True)
    bounds, contradicting = in_force(LIMITS, said, complete=True)
    of_rest, contradicting_rest = in_force(REST_LIMITS, said, complete=True)
    mistakes = [
        *(*mistakes, *wrong, *wrong_limits, *wrong_rest_limits, *wrong_options, *contradicting, *contradicting_rest),
        *_limits_of_no_rest(of_rest, oracle["rest_listen"].value),
    ]
    if mistakes:
        raise Wrong(mistakes)
    chosen_for_rest = tuple(f"{name}={each.value}" for name, each in of_rest.items() if each.origin != DEFAULT_ORIGIN)
    changed = _changed(((ORACLE, oracle), (LIMITS, bounds), (REST_LIMITS, of_rest)))
    return Chosen(ServeOptions(**_values(oracle)), Limits(**_values(bounds)), chosen_for_rest, changed)


def limits_of(environment: Mapping[str, str], texts: Sequence[str]) -> Limits:
    """The defaults, changed by the environment, then by texts such as ``connections_max=50``. Raises ``Wrong``."""
    return Limits(**values_of_pairs(LIMITS, _LIMIT_FLAG, texts, environment))


def _limits_of_no_rest(found: Mapping[str, InForce], rest_listen: str) -> Iterator[Mistake]:
    """What nobody would read: whoever said it expects REST."""
    for name, each in found.items():
        if each.origin != DEFAULT_ORIGIN and not rest_listen:
            yield Mistake(each.origin, f"{name} is a limit of REST, but there is no REST: give --rest-listen, too")


def default_name() -> str:
    """A name for this process: host and process id."""
    host = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in socket.gethostname())
    return f"{host[:80]}-{os.getpid()}"


def _values(found: Mapping[str, InForce]) -> dict[str, Any]:
    return {name: each.value for name, each in found.items()}


def _changed(sections: Iterable[tuple[Section, Mapping[str, InForce]]]) -> str:
    shown = [
        f"{each.name}={each.shown(found[each.name].value)} ({found[each.name].origin})"
        for section, found in sections
        for each in section.settings
        if found[each.name].origin != DEFAULT_ORIGIN
    ]
    return ", ".join(shown) or "all at their defaults"
