"""Self-made certificates for tests: an authority, and what it signs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

from access.server_files import ServerFiles


class Authority:
    """Signs certificates; its own is ``certificate``. Files lie in ``folder``, one authority in each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate = str(folder / "authority.pem")
        self._signing = trustme.CA()
        self._signing.cert_pem.write_to_path(self.certificate)

    def issue(self, name: str, host: str = "127.0.0.1", *, expired: bool = False) -> ServerFiles:
        """A certificate for that host, or address, until tomorrow or yesterday."""
        certificate, key = (str(self._folder / f"{name}.{end}") for end in ("pem", "key"))
        now = datetime.now(UTC)
        signed = self._signing.issue_cert(
            host,
            common_name=name,
            not_before=now - timedelta(days=2),
            not_after=now + timedelta(days=-1 if expired else 1),
        )
        for blob, path in ((signed.cert_chain_pems[0], certificate), (signed.private_key_pem, key)):
            blob.write_to_path(path)
        return ServerFiles(certificate, key)
