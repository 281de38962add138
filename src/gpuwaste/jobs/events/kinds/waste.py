"""Family waste: GPUs that are held idle, and the causes that the ledger finds."""

from typing import Annotated, Any, Final

from msgspec import Meta

from gpuwaste.core.codec import Number, Whole
from gpuwaste.jobs.events.event_kind import EventKind, OfRun


class IdleHeld(OfRun, frozen=True):
    """The GPUs of a running job that did nothing when last heard of."""

    user: str
    account: str
    gpus: Annotated[Whole, Meta(description="GPUs of the run that are idle now.")]
    idle_s: Annotated[Number, Meta(description="For how long the first of them has been idle, seconds.")]
    wasted_gpu_s: Annotated[Number, Meta(description="GPU-seconds wasted since the run's start.")]


class CauseFound(OfRun, frozen=True):
    """A cause of waste of a run that has ended, with its evidence."""

    user: str
    account: str
    cause: Annotated[str, Meta(description="The finding's kind, such as gpus_untouched.")]
    title: str
    fix: Annotated[tuple[str, ...], Meta(description="The lines of the first of fixes.")]
    wasted_gpu_s: Number
    evidence: dict[str, Any]
    fixes: Annotated[
        tuple[dict[str, Any], ...],
        Meta(description="Alternative changes, each with its text and its lines to copy."),
    ] = ()


KINDS: Final = (
    EventKind("waste.opened", "GPUs of a running job are idle for longer than a finding needs.", IdleHeld),
    EventKind("waste.grown", "They are still idle: the time has doubled since the event before.", IdleHeld),
    EventKind("waste.closed", "They are at work again, or the run has ended.", IdleHeld),
    EventKind("waste.finding", "A run was judged: one event for each cause of its waste.", CauseFound),
)
