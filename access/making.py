"""New tokens: the secret, the lines that go into the file, and the file written so that no reader sees half of it."""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from access.roles import AccessRole
from access.tokens import Tokens, hash_of, parse

SECRET_BYTES: Final = 32
SECRET_PREFIX: Final = "pythia_"
"""By which people, and programs that look for secrets in the wrong places, know one."""


def make_secret() -> str:
    """256 random bits, as text."""
    return SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def lines_of(
    name: str, secret: str, roles: Sequence[AccessRole], expires: datetime | None, limits: Mapping[str, int]
) -> str:
    """What stands for the token in the file."""
    lines = [f"[tokens.{name}]", f"roles = {json.dumps(roles)}", f'sha256 = ["{hash_of(secret).hex()}"]']
    if expires is not None:
        lines.append(f"expires = {expires.isoformat()}")
    lines += [f"{limit} = {value}" for limit, value in limits.items()]
    return "\n".join(lines) + "\n"


def add_to(path: str, lines: str) -> Tokens:
    """Append a token to the file, which is made where there is none; readable by its owner alone.

    All or nothing: the whole new text is checked, and takes the old one's place at once. Raises ``BadTokens`` and
    ``OSError``.
    """
    target = Path(os.path.realpath(path))
    before = target.read_text(encoding="utf-8-sig") if target.exists() else ""
    text = f"{before.rstrip()}\n\n{lines}" if before.strip() else lines
    tokens = parse(text)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # mode 600 from the start
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if target.exists():  # the oracle that reads it may be another user than whoever adds to it
                owner = target.stat()
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return tokens
