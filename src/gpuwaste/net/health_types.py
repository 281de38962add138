"""The type of GET /v1/health: the health of a hub. A reader accepts one without the fields that a later hub added."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from gpuwaste.core.fields import Document
from gpuwaste.core.underuse import UNDER_USE, UnderUse

_INBOX_LATE_S: Final = 120


class AccountingHealth(Struct, kw_only=True, frozen=True):
    """The state of the import from accounting."""

    ok: bool = False
    lag_s: Annotated[float | None, Meta(description="Age of what was read last, seconds; null: nothing yet.")] = None
    failures: Annotated[int, Meta(description="Failed queries in a row.")] = 0
    error: Annotated[str, Meta(description="Why the last query failed; empty: nothing.")] = ""


class PredictionHealth(Document, kw_only=True, frozen=True):
    """The state of prediction: which model is in use, and what is wrong with it."""

    state: Literal["starting", "ready", "not installed"] = "starting"
    model: Annotated[str, Meta(description="The name of the bundle in use; empty: none.")] = ""
    model_hash: str = ""
    note: Annotated[str, Meta(description="How the bundle differs from the site's settings; empty: nothing.")] = ""
    created: Annotated[int | None, Meta(description="When the bundle was made, UTC seconds.")] = None
    event: Annotated[int | None, Meta(description="The last event of the history that is known.")] = None
    error: Annotated[
        str, Meta(description="Why the champion, or what is new in the history, is not in use; empty: nothing.")
    ] = ""


class LedgerHealth(Struct, kw_only=True, frozen=True):
    """How far runs are judged."""

    judged_until: Annotated[
        int | None, Meta(description="Every run that ended before is judged, UTC seconds; null: not known.")
    ] = None
    judged_anew_ratio: Annotated[
        float | None, Meta(description="Share of the runs judged by changed thresholds, 0 to 1; null: none changed.")
    ] = None


class InboxHealth(Struct, kw_only=True, frozen=True):
    """The batches that standby hubs have accepted and the active hub has not merged."""

    batches: int = 0
    age_s: Annotated[float | None, Meta(description="Age of the oldest, seconds; null: none waits.")] = None

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
    protocol: Annotated[tuple[int, int], Meta(description="The lowest and the highest protocol that it understands.")]
    accounting: AccountingHealth = AccountingHealth()
    prediction: PredictionHealth = PredictionHealth()
    ledger: LedgerHealth = LedgerHealth()
    under_use: Annotated[UnderUse, Meta(description="The rule by which the history counts the use of GPUs.")] = (
        UNDER_USE
    )
    nodes_reporting: Annotated[int, Meta(description="Nodes whose last batch is younger than an hour.")] = 0
    role: Annotated[
        Literal["serves", "stands by"],
        Meta(description="A standby answers with HTTP 503, and only its role is known."),
    ] = "serves"
    inbox: InboxHealth = InboxHealth()
