"""The type of GET /v1/health: the health of a hub. A reader accepts one without the fields that a later hub added."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gpuwaste.core.fields import Document
from gpuwaste.core.underuse import UNDER_USE, UnderUse

_INBOX_LATE_S: Final = 120
FAR_PCT: Final = 10.0
"""Percentage points by which two sources differ much."""


class AccountingHealth(Struct, kw_only=True, frozen=True):
    """The state of the import from accounting."""

    ok: bool = False
    lag_s: Annotated[float | None, Meta(description="Age of the newest accounting, seconds; null: none yet.")] = None
    failures: Annotated[int, Meta(description="Failed queries in a row.")] = 0
    error: Annotated[str, Meta(description="Error of the last query; empty: it succeeded.")] = ""


class PredictionHealth(Document, kw_only=True, frozen=True):
    """The state of prediction: which model is in use, and what is wrong with it."""

    state: Literal["starting", "ready", "not installed"] = "starting"
    model: Annotated[str, Meta(description="Name of the model in use; empty: none.")] = ""
    model_hash: str = ""
    note: Annotated[str, Meta(description="How the model differs from the site's settings; empty: no difference.")] = ""
    created: Annotated[int | None, Meta(description="When the model was trained, UTC seconds.")] = None
    event: Annotated[int | None, Meta(description="Number of the last job event that was read.")] = None
    error: Annotated[
        str, Meta(description="Why the champion or the newest history is not used; empty: both are used.")
    ] = ""


class LedgerHealth(Struct, kw_only=True, frozen=True):
    """How far runs are judged."""

    judged_until: Annotated[
        int | None, Meta(description="All runs that ended before are judged, UTC seconds; null: not known.")
    ] = None
    judged_anew_ratio: Annotated[
        float | None, Meta(description="Share of runs judged again after thresholds changed, 0 to 1; null: no change.")
    ] = None


class SourcesHealth(Struct, kw_only=True, frozen=True):
    """Agents checked against jobstats: mean utilization of the last week's runs of which both have all GPUs."""

    runs: int = 0
    typical_pct: Annotated[
        float | None, Meta(description="Median of the absolute differences, percentage points; null: no runs.")
    ] = None
    mean_pct: Annotated[
        float | None, Meta(description="Mean of the agents' less jobstats', percentage points; null: no runs.")
    ] = None
    far_runs: Annotated[int, Meta(description="Runs that differ by more than 10 percentage points.")] = 0


class InboxHealth(Struct, kw_only=True, frozen=True):
    """The batches that standby hubs have accepted and the active hub has not merged."""

    batches: int = 0
    age_s: Annotated[float | None, Meta(description="Age of the oldest batch, seconds; null: none.")] = None

    @property
    def late(self) -> bool:
        """Whether merging them is late."""
        return (self.age_s or 0) >= _INBOX_LATE_S


class HealthAnswer(Document, kw_only=True, frozen=True):
    """The hub's health."""

    status: Literal["ok", "degraded"] = "ok"
    version: str = "unknown"
    cluster: str = ""
    now: Annotated[float | UnsetType, Meta(description="The hub's clock, UTC seconds.")] = UNSET
    protocol: Annotated[tuple[int, int], Meta(description="Lowest and highest protocol version that the hub accepts.")]
    accounting: AccountingHealth = AccountingHealth()
    prediction: PredictionHealth = PredictionHealth()
    ledger: LedgerHealth = LedgerHealth()
    under_use: Annotated[UnderUse, Meta(description="Thresholds for under-used GPUs in the job history.")] = UNDER_USE
    nodes_reporting: Annotated[int, Meta(description="Nodes that sent a batch in the last hour.")] = 0
    role: Annotated[
        Literal["serves", "stands by"],
        Meta(description="A standby answers with HTTP 503 and gives only its role."),
    ] = "serves"
    inbox: InboxHealth = InboxHealth()
    sources: SourcesHealth = SourcesHealth()
