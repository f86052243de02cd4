"""The flags by which operators' commands show who asks: files, never a secret itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from access import Credentials

_FLAGS = {
    "token_file": ("FILE", "PYTHIA_TOKEN_FILE", "Holds the token to show; without it PYTHIA_TOKEN may be the token."),
    "tls_authority_file": ("FILE", "PYTHIA_CLIENT_TLS_AUTHORITY_FILE", "Who signs oracles' certificates: speak TLS."),
    "tls_certificate_file": ("FILE", "PYTHIA_CLIENT_TLS_CERTIFICATE_FILE", "The certificate to show."),
    "tls_key_file": ("FILE", "PYTHIA_CLIENT_TLS_KEY_FILE", "Its key."),
    "tls_server_name": ("NAME", "PYTHIA_CLIENT_TLS_SERVER_NAME", "Whom oracles' certificates have to name."),
}


def credential_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives the command ``credentials``."""

    @wraps(command)
    def with_credentials(**given: Any) -> Any:
        return command(**given, credentials=Credentials(**{name: given.pop(name) for name in _FLAGS}))

    decorated: Callable[..., Any] = with_credentials
    for name, (metavar, variable, text) in reversed(_FLAGS.items()):
        flag = f"--{name.replace('_', '-')}"
        decorated = click.option(flag, name, default="", metavar=metavar, envvar=variable, show_envvar=True, help=text)(
            decorated
        )
    return decorated
