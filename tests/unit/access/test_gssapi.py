"""The binding of the system's GSSAPI library, as far as no KDC is needed for it; see integration/test_kerberos.py."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from access import gssapi
from access.gssapi import KerberosFailure, KerberosUnavailable, SecurityContext, require_library


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gssapi._library.cache_clear()
    monkeypatch.setattr(gssapi, "LIBRARY", "libnowhere.so.2")
    yield
    gssapi._library.cache_clear()


@pytest.mark.usefixtures("no_library")
def test_where_the_library_is_missing_it_is_told_what_brings_it() -> None:
    with pytest.raises(KerberosUnavailable, match=r"libnowhere\.so\.2, which comes with Debian's libgssapi-krb5-2"):
        require_library()


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A realm without a KDC."""
    try:
        require_library()
    except KerberosUnavailable as error:
        pytest.skip(f"NOT TESTED: {error}")
    configuration = tmp_path / "krb5.conf"
    configuration.write_text("[libdefaults]\ndefault_realm = NOWHERE\ndns_lookup_kdc = false\n")
    monkeypatch.setenv("KRB5_CONFIG", str(configuration))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)
    return tmp_path


def test_without_tickets_the_library_says_so(nowhere: Path) -> None:
    with pytest.raises(KerberosFailure, match=rf"No Kerberos credentials available .*{nowhere / 'tickets'}"):
        SecurityContext("hbase", "localhost").step(b"")


def test_a_file_that_is_no_keytab_is_told(nowhere: Path) -> None:
    keytab = nowhere / "keytab"
    keytab.write_text("no keytab")
    with pytest.raises(KerberosFailure, match=r"\w"):
        SecurityContext("hbase", "localhost", principal="etl@NOWHERE", keytab_file=str(keytab)).step(b"")


def test_a_principal_that_cannot_be_one_is_told(nowhere: Path) -> None:
    with pytest.raises(KerberosFailure, match=r"\w"):
        SecurityContext("hbase", "localhost", principal="a@b@c").step(b"")


def test_what_the_library_allots_is_given_back(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = list[str]()
    release = gssapi._release

    def noted(function: str, handle: object, *arguments: object) -> None:
        released.append(function)
        release(function, handle, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(gssapi, "_release", noted)
    with suppress(KerberosFailure):  # without tickets; what it had allotted by then is as good
        SecurityContext("hbase", "localhost")
    gc.collect()
    assert sorted({*released}) == ["gss_delete_sec_context", "gss_release_cred", "gss_release_name"]
