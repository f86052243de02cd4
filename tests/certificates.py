"""Self-made certificates for tests, by the openssl command; an authority, and what it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path

from access.server_files import ServerFiles

LIMIT_SECONDS = 60


class Authority:
    """Signs certificates; its own is ``certificate``. Files lie in ``folder``, one authority in each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.certificate = str(folder / "authority.pem")
        self._key = str(folder / "authority.key")
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-keyout", self._key, "-out", self.certificate),
            *("-days", "2", "-subj", "/CN=test authority"),
        )

    def issue(self, name: str, alternative: str = "IP:127.0.0.1", days: int = 1) -> ServerFiles:
        """A certificate for whoever has that alternative name; ``days`` below 0: one that has expired."""
        request, certificate, key = (str(self._folder / f"{name}.{end}") for end in ("request", "pem", "key"))
        extensions = self._folder / f"{name}.extensions"
        extensions.write_text(f"subjectAltName={alternative}\n")
        _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial"),
            *("-out", certificate, "-days", str(days), "-extfile", str(extensions)),
        )
        return ServerFiles(certificate, key)


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=LIMIT_SECONDS)
