"""The gateways that somebody named, and how to reach them: looked through before anything is sent."""

from __future__ import annotations

from dataclasses import replace

from access import kerberos, service_tls
from access.services import GATEWAY
from store.hbase.addresses import Addresses, parse_addresses
from store.hbase.http import SERVICE
from store.hbase.settings import PoolSettings


def gateways_at(text: str, settings: PoolSettings) -> tuple[Addresses, PoolSettings]:
    """Those of ``"host:port"``, or several separated by commas, in the order in which to try them; and ``settings``
    with what the environment says of TLS and Kerberos.

    Raises ``BadAddress``; ``BadTls`` or ``BadKerberos`` for what cannot be used, or is there though no address says so.
    """
    addresses = Addresses(parse_addresses(text), avoid_failed_ms=settings.avoid_failed_ms)
    who = kerberos.checked(settings.kerberos, GATEWAY, spoken=addresses.kerberos)
    if addresses.http and addresses.kerberos:
        who = replace(who, service=who.service or SERVICE)
    return addresses, replace(
        settings, tls=service_tls.checked(settings.tls, GATEWAY, spoken=addresses.tls), kerberos=who
    )
