"""The flags by which operators' commands show who asks: files, never a secret itself.

The invariant: what cannot be used is told before anybody is asked anything. Of an oracle that does not answer, or does
not let us in, another thing is wrong, and the command ends with another code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from access import Credentials
from access.credentials import VARIABLES

_FLAGS = {
    "token_file": ("FILE", "Holds the token to show; without it PYTHIA_TOKEN may be the token."),
    "tls_authority_file": ("FILE", "Who signs oracles' certificates: speak TLS."),
    "tls_certificate_file": ("FILE", "The certificate to show."),
    "tls_key_file": ("FILE", "Its key; not given: in the certificate's file."),
    "tls_server_name": ("NAME", "Whom oracles' certificates have to name, if not the host that is dialled."),
}


def credential_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives the command ``credentials``; they raise ``BadCredentials`` before it begins."""

    @wraps(command)
    def with_credentials(**given: Any) -> Any:
        credentials = Credentials(**{name: given.pop(name) for name in _FLAGS})
        credentials.token()
        credentials.tls()
        return command(**given, credentials=credentials)

    decorated: Callable[..., Any] = with_credentials
    for name, (metavar, text) in reversed(_FLAGS.items()):
        flag = f"--{name.replace('_', '-')}"
        option = click.option(flag, default="", metavar=metavar, envvar=VARIABLES[name], show_envvar=True, help=text)
        decorated = option(decorated)
    return decorated
