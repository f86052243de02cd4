"""Which role each operation asks for, in one table. Pure.

The invariant: no route without a role; ``Routes.add`` refuses one. Who has which role is for the dependency that
``create_app`` is given: `rest.callers.by_token`, or where no tokens are asked for, everybody has every role.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

Role = Literal["open", "read", "transact", "operate"]

ROLES: Mapping[str, Role] = {
    "live": "open",
    "ready": "open",
    "problem": "open",
    "metrics": "read",
    "status": "read",
    "console_page": "open",
    "console_file": "open",
    "installation": "read",
    "installation_metrics": "read",
    "hand_over": "operate",
    "decode_timestamp": "read",
    "begin": "transact",
    "commit": "transact",
    "commit_batch": "transact",
    "abort": "transact",
    "outcome": "read",
    "outcomes": "read",
    "take_snapshot": "read",
    "heartbeat": "transact",
    "begin_transaction": "transact",
    "show_transaction": "transact",
    "commit_transaction": "transact",
    "roll_back_transaction": "transact",
    "read_row": "transact",
    "scan_rows": "transact",
    "read_rows": "transact",
    "put_row": "transact",
    "delete_row": "transact",
    "write_rows": "transact",
    "claim_key": "transact",
    "make_savepoint": "transact",
    "roll_back_to_savepoint": "transact",
    "release_savepoint": "transact",
    "read_row_at": "read",
    "scan_rows_at": "read",
    "read_rows_at": "read",
    "scan_changes_at": "read",
}

Require = Callable[[Role], Callable[..., Any]]
"""Makes the dependency that lets a caller with a role pass, and raises ``Problem`` for others."""


def open_to_all(role: Role) -> Callable[..., Any]:
    """Everybody has every role."""

    async def allow() -> None:
        return None

    return allow
