"""What a program's counts mean: the one list that they are made from, and that documentation and dashboard are held to.

Of the oracle's: ``wire.metric_families``.
"""

from __future__ import annotations

from typing import Final

from wire.metric_families import Family

ROOT: Final = "root"
"""The label that every sample has: the installation, by its znode."""

FAMILIES: Final[tuple[Family, ...]] = (
    Family("pythia_client_begin_seconds", "histogram", "Per transaction begun: how long the oracle's answer took."),
    Family("pythia_client_begin_failures_total", "counter", "Transactions that could not be begun."),
    Family("pythia_client_commits_total", "counter", "Calls of commit that came to their end, by how.", ("result",)),
    Family(
        "pythia_client_commit_seconds",
        "histogram",
        "Per call of commit of a transaction that wrote: from the call to its end, whichever.",
    ),
    Family(
        "pythia_client_commit_step_seconds",
        "histogram",
        "Per commit, or fence, that came so far: how long that step took. Written: tentative versions are in HBase. "
        "Answered: the oracle says that it committed. Shadowed: the shadow cells are written, or left to readers.",
        ("step",),
    ),
    Family(
        "pythia_client_rollbacks_total", "counter", "Transactions rolled back, whose commit was forbidden included."
    ),
    Family("pythia_client_reruns_total", "counter", "Functions that run called once more after an abort."),
    Family(
        "pythia_client_revalidations_total",
        "counter",
        "Looks for conflicts in the tables, as the oracle could not judge a commit: after a failover, or a long time.",
    ),
    Family(
        "pythia_client_outcome_lookups_total",
        "counter",
        "Transactions that the commit table was asked about by readers who met no shadow cell of theirs.",
    ),
    Family("pythia_client_oracle_connections_total", "counter", "Connections to a primary oracle that came about."),
    Family("pythia_client_oracle_overloads_total", "counter", "Times that the oracle said that it is overloaded."),
    Family(
        "pythia_client_in_use",
        "gauge",
        "Transactions and snapshots that are open and that somebody holds; of snapshots that have no name.",
    ),
    Family(
        "pythia_client_oldest_in_use_seconds", "gauge", "For how long the oldest of them has been; 0: there is none."
    ),
)
