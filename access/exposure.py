"""What may be listened on with which protection. Pure.

The invariant: nothing that everybody may use, and no token in clear text, is offered beyond this machine, unless the
operator has said so in as many words.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Any, Final

OPEN_OPTION: Final = "insecure_listen_without_authentication"
CLEAR_OPTION: Final = "insecure_tokens_without_tls"

Contradiction = tuple[tuple[str, ...], str]
"""The names of settings that do not go together, and why."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address to listen on."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def exposures(options: Mapping[str, Any], hosts: Mapping[str, str]) -> Iterator[Contradiction]:
    """What is exposed that should not be. ``hosts``: by the name of a setting, where it has us listen."""
    for name, host in hosts.items():
        if is_loopback(host):
            continue
        if not options["tokens_file"] and not options[OPEN_OPTION]:
            yield (
                (name, "tokens_file"),
                f"{name} is beyond this machine ({host}), and everybody there could do everything: name a tokens_file "
                f"(pythia token create), or say --{OPEN_OPTION.replace('_', '-')}",
            )
        if options["tokens_file"] and not options["tls_certificate_file"] and not options[CLEAR_OPTION]:
            yield (
                (name, "tls_certificate_file"),
                f"{name} is beyond this machine ({host}), and tokens would go there in clear text: name a "
                f"tls_certificate_file and a tls_key_file, or say --{CLEAR_OPTION.replace('_', '-')}",
            )


def incomplete(options: Mapping[str, Any]) -> Iterator[Contradiction]:
    """Files of which one is nothing without another."""
    pairs = (
        ("tls_certificate_file", "tls_key_file"),
        ("tls_key_file", "tls_certificate_file"),
        ("tls_client_authority_file", "tls_certificate_file"),
    )
    for name, needed in pairs:
        if options[name] and not options[needed]:
            yield (name, needed), f"{name} is nothing without {needed}"
    if options["rest_listen"] and options["tokens_file"] and not options["rest_token_file"]:
        yield (
            ("rest_listen", "rest_token_file"),
            "REST goes to whichever oracle is primary with a token of its own: name a rest_token_file (roles transact "
            "and operate)",
        )
    if options["rest_listen"] and options["tls_certificate_file"] and not options["rest_tls_authority_file"]:
        yield (
            ("rest_listen", "rest_tls_authority_file"),
            "REST goes to whichever oracle is primary by TLS: name the authority of their certificates as "
            "rest_tls_authority_file",
        )
