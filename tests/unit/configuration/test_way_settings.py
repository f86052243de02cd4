"""Settings for TLS and Kerberos: a name and a variable for each, and what does not go together."""

from __future__ import annotations

import dataclasses

import pytest

from access.services import GATEWAY, ZOOKEEPER, Kerberos, TlsFiles
from client import ClientSettings, InvalidSettings
from client.settings import CLIENT
from configuration import Section
from tso.options import ORACLE

FIELDS = [field.name for field in dataclasses.fields(TlsFiles)]
SECTIONS = pytest.mark.parametrize("section", [CLIENT, ORACLE], ids=lambda section: str(section.name))


@SECTIONS
@pytest.mark.parametrize("service", [GATEWAY, ZOOKEEPER])
def test_each_file_has_one_name_and_one_variable(section: Section, service: str) -> None:
    declared = {each.name: each.environment for each in section.settings if each.name.startswith(f"{service}_tls_")}
    assert declared == {TlsFiles.setting(service, field): TlsFiles.variable(service, field) for field in FIELDS}


@SECTIONS
def test_each_value_for_kerberos_has_one_name_and_one_variable(section: Section) -> None:
    declared = {each.name: each.environment for each in section.settings if "_kerberos_" in each.name}
    assert declared == {
        Kerberos.setting(service, field.name): Kerberos.variable(service, field.name)
        for service in (GATEWAY, ZOOKEEPER)
        for field in dataclasses.fields(Kerberos)
    }


@SECTIONS
@pytest.mark.parametrize(("service", "called"), [(GATEWAY, "gateway"), (ZOOKEEPER, "ZooKeeper")])
@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Kerberos)])
def test_what_is_for_kerberos_needs_an_address_that_says_so(
    section: Section, service: str, called: str, field: str
) -> None:
    setting = Kerberos.setting(service, field)
    for address, is_told in (
        ("t:1", True),
        ("tls://t:1", True),
        ("kerberos:1", True),
        ("kerberos://t:1", False),
        ("kerberos+tls://t:1", False),
        ("https://t:1", True),
        ("kerberos+https://t:1", False),
    ):
        given = {each.name: each.default for each in section.settings}
        given |= {"zookeeper": "z:1", "thrift": "t:1", service: address, setting: "x"}
        told = [reason for names, reason in section.contradictions(given) if setting in names]
        instead = f"give {service} as kerberos://host:port, or leave it out"
        assert told == [f"{setting} is for a {called} that asks for Kerberos: {instead}"] * is_told


def test_what_settings_do_not_name_comes_from_the_environment_of_who_connects() -> None:
    settings = ClientSettings("tls://z:1", "tls://a:1", zookeeper_tls_authority_file="x")
    files = TlsFiles.named_in(settings, ZOOKEEPER)
    environment = {"PYTHIA_ZOOKEEPER_TLS_AUTHORITY_FILE": "y", "PYTHIA_ZOOKEEPER_TLS_CERTIFICATE_FILE": "z"}
    assert files.completed(environment, ZOOKEEPER) == TlsFiles("x", "z")
    assert files.completed(environment, ZOOKEEPER).named() == {"authority_file": "x", "certificate_file": "z"}
    assert TlsFiles.named_in(settings, GATEWAY).completed(environment, GATEWAY) == TlsFiles()


@SECTIONS
@pytest.mark.parametrize("service", [GATEWAY, ZOOKEEPER])
@pytest.mark.parametrize(
    ("address", "named", "words"),
    [
        ("a:1", "authority_file", "authority_file is for a (gateway|ZooKeeper) that speaks TLS: give {} as tls://"),
        ("a:1", "certificate_file", "certificate_file is for a (gateway|ZooKeeper) that speaks TLS"),
        ("tls://a:1", "key_file", "key_file is a key without its certificate: give {}_tls_certificate_file"),
        ("tls://a:1", "certificate_file", ""),
        ("kerberos+tls://a:1", "certificate_file", ""),
    ],
)
def test_what_does_not_go_together_is_told_with_all_other_mistakes(
    section: Section, service: str, address: str, named: str, words: str
) -> None:
    setting = TlsFiles.setting(service, named)
    given = {each.name: each.default for each in section.settings}
    given |= {"zookeeper": "z:1", "thrift": "t:1", service: address, setting: "x"}
    told = [reason for names, reason in section.contradictions(given) if setting in names]
    assert len(told) == bool(words)
    for reason in told:
        with pytest.raises(ValueError, match=words.format(service)):
            raise ValueError(reason)


@SECTIONS
@pytest.mark.parametrize(
    ("address", "fits"), [("http://t:1", False), ("https://t:1", True), ("kerberos+https://t:1", True)]
)
def test_http_over_tls_is_tls(section: Section, address: str, fits: bool) -> None:
    given = {each.name: each.default for each in section.settings}
    given |= {"zookeeper": "z:1", "thrift": address, "thrift_tls_certificate_file": "x"}
    told = [reason for names, reason in section.contradictions(given) if "thrift_tls_certificate_file" in names]
    assert bool(told) is not fits


def test_settings_of_a_client_that_contradict_one_another_are_none() -> None:
    with pytest.raises(InvalidSettings, match="thrift_tls_authority_file is for a gateway that speaks TLS"):
        ClientSettings("z:1", "a:1", thrift_tls_authority_file="x")
    with pytest.raises(InvalidSettings, match="zookeeper_tls_authority_file is for a ZooKeeper that speaks TLS"):
        ClientSettings("z:1", "a:1", zookeeper_tls_authority_file="x")
    with pytest.raises(InvalidSettings, match="thrift_tls_key_file is text"):
        ClientSettings("z:1", "tls://a:1", thrift_tls_key_file=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidSettings, match=r"zookeeper: all of ZooKeeper's hosts have the same before them"):
        ClientSettings("tls://z:1,y:1", "a:1")
