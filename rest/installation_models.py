"""The installation as JSON: its members, lease, history and open transactions, for the console and scripts. Pure."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from lease.history import Cause
from rest.models import RoleName


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MemberState(_Model):
    """One oracle. ``silent``: it is a member and does not answer; why is in ``problem``."""

    holder: str = Field(examples=["oracle-1"])
    address: str = Field(examples=["127.0.0.1:5480"])
    rest: str = Field(description="Where its REST, and so its console, is; empty: not known.")
    role: RoleName
    warm: bool | None = Field(description="Ready for a takeover; null: not known.")
    own: bool = Field(description="It is the one beside the process that answers.")
    connections: int | None
    problem: str
    hindrance: str = Field(description="What keeps it from becoming primary; empty: nothing that is known.")


class LeaseClock(_Model):
    """The lease as the primary tells it, or, where none answers, as a standby sees it run out."""

    told_by: str
    lease_ms: int
    remaining_ms: int


class OpenTransaction(_Model):
    """A transaction that sends heartbeats."""

    start_timestamp: str
    snapshot: str
    age_ms: int
    silent_ms: int = Field(description="Since when nothing was heard of it.")


class Horizon(_Model):
    """No living transaction reads below it: vacuum may drop what is older."""

    timestamp: str
    behind_ms: int


class TenureState(_Model):
    """One tenure; times by the wall clock of who served."""

    epoch: str
    holder: str
    address: str
    rest: str
    since_ms: int = Field(description="When it began to serve, in milliseconds since 1970.")
    cause: Cause
    outage_ms: int | None = Field(description="For how long nobody had served; null: nobody had before.")
    at_least: bool = Field(description="The outage may have been longer: its beginning was not seen.")


class InstallationState(_Model):
    """What is known of the whole installation, whichever process is asked."""

    root: str = Field(examples=["/pythia"])
    elected: bool = Field(description="False: one oracle alone, without a lease.")
    now_ms: int = Field(description="When it was looked, in milliseconds since 1970.")
    primary: str = Field(description="The holder who serves; empty: nobody.")
    epoch: str
    lease: LeaseClock | None
    members: list[MemberState]
    horizon: Horizon | None = Field(description="Null: not known; in the first life of an epoch it never is.")
    transactions: list[OpenTransaction] = Field(description="The oldest, 20 at most.")
    transaction_life_ms: int | None
    history: list[TenureState] = Field(description="The last tenures, the oldest first, 64 at most.")
    problems: list[str]


class InstallationMetrics(_Model):
    """What the primary has counted. Who asks twice takes the differences."""

    process: str = Field(description="Whose numbers these are; empty: nobody serves.")
    monotonic_ms: int = Field(description="When they were read, by a clock that is never stepped.")
    samples: dict[str, float] = Field(examples=[{"pythia_begins_total": 12}])


class HandedOver(_Model):
    """Who gave the lease to whom. ``took_ms``: from the question until the next one served, as seen from here."""

    from_holder: str
    to_holder: str
    from_epoch: str
    to_epoch: str
    took_ms: float
