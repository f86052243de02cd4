"""Files of tokens for tests: one token for each role, and what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from access.making import lines_of, make_secret
from access.roles import AccessRole


@dataclass
class Keyring:
    """A file of tokens, and the secrets that it has the hashes of."""

    path: Path
    secrets: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, *roles: AccessRole, more: str = "") -> str:
        """A token of that name; returns its secret."""
        secret = self.secrets[name] = make_secret()
        before = self.path.read_text() if self.path.exists() else ""
        self.path.write_text(f"{before}{lines_of(name, secret, list(roles), None, {})}{more}\n\n")
        return secret

    def file_of(self, name: str) -> str:
        """A file with a token's secret."""
        path = self.path.parent / f"{name}.token"
        path.write_text(self.secrets[name] + "\n")
        return str(path)


def one_of_each(folder: Path) -> Keyring:
    """A token for each role, of the role's name."""
    keyring = Keyring(folder / "tokens.toml")
    for role in AccessRole:
        keyring.add(role.value, role)
    return keyring
