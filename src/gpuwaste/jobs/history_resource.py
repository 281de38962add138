"""The stream of events of runs: /v1/history, for the advisor and for training."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

from msgspec import Meta, defstruct

from gpuwaste.core.fields import Number
from gpuwaste.core.refusal import FORBIDDEN, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.underuse import UnderUse
from gpuwaste.jobs.job_event import EVENT_CODEC
from gpuwaste.show.resource import Reading, Resource

MAX_HISTORY: Final = 10_000
_EVENT: Final[Any] = EVENT_CODEC.struct
HistoryAnswer: Final = defstruct("HistoryAnswer", [("events", list[_EVENT]), ("next", int), ("under_use", UnderUse)])
HistoryAnswer.__doc__ = (
    "Job events in order; `under_use`: thresholds for under-used GPUs. To continue, send `next` as `after`."
)


@dataclass(frozen=True)
class HistoryQuestion:
    """After which event, and how many."""

    after: Number = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_HISTORY)] = 1000


def history(reading: Reading, scope: Scope, question: HistoryQuestion) -> dict[str, Any]:
    """Return the events of runs after event `after`."""
    from gpuwaste.jobs.run_store import history_events
    from gpuwaste.store.hub.hub_store import HubStore

    if not (scope.everything or scope.agent):
        raise Refusal(FORBIDDEN, "only operators may read the job history")
    store = reading.get(HubStore)
    events = history_events(store, question.after, min(question.limit, MAX_HISTORY))
    following = events[-1].seq if events else question.after
    counted = asdict(store.under_use)
    return {"events": [event.to_json() for event in events], "next": following, "under_use": counted}


RESOURCES = (
    Resource(path="/v1/history", question=HistoryQuestion, document=HistoryAnswer, read=history, standby=True),
)
