"""Defaults, and words, that several sections share."""

from typing import Final

DEFAULT_ROOT: Final = "/pythia"
"""Znode of an installation."""
THRIFT_TEXT: Final = (
    "HBase's Thrift gateway, or several of them; before each `framed://` where the transport is framed, `kerberos://` "
    "where it asks for Kerberos, `tls://` where TLS is spoken before it, `framed+tls://`, `kerberos+tls://` for both; "
    "`http://` or `https://` where it listens for HTTP, with `kerberos+` before that where it asks for it."
)
"""What the address of a gateway is, wherever one is asked for."""
THRIFT2_TEXT: Final = (
    "HBase's Thrift 2 gateway, or several of them, which make tables of several regions; not given: a table begins "
    "with one. Written as the address of the Thrift gateway is, and reached with the same TLS and Kerberos."
)
"""What the address of a Thrift 2 gateway is, wherever one is asked for."""
SHADOW_CELLS: Final = ("written", "in_background")
"""What there is to choose from for the shadow cells of what is put; the first one by default."""
