"""Family action: actions that rules want on a run or a node, and each step until they are done or not."""

from typing import Annotated, Final

from msgspec import Meta, Struct, field

from gpuwaste.core.codec import Int64
from gpuwaste.jobs.events.event_kind import EventKind


class ActionStep(Struct, frozen=True):
    """One step of an action."""

    cluster: str
    job_id: Annotated[Int64 | None, Meta(description="null: the action is not about a run.")] = field(name="jobid")
    start: Annotated[Int64 | None, Meta(description="UTC seconds; null: the action is not about a run.")]
    subject: Annotated[str, Meta(description="The run's key, node/NAME or model/NAME.")]
    user: str
    account: str
    action: Annotated[str, Meta(description="The action's id.")]
    kind: Annotated[str, Meta(description="Kind of action: cancel, hold ...")]
    rule: str
    rule_hash: str
    options: dict[str, str]
    facts: Annotated[str, Meta(description="Facts on which the rule decided, as JSON.")]
    approve: Annotated[str, Meta(description="person: a person must approve the action first.")]
    expires: Annotated[Int64, Meta(description="UTC seconds after which it is not sent.")]
    person: Annotated[str, Meta(description="Who approved or refused it.")] = ""
    reason: Annotated[str, Meta(description="Reason of this end.")] = ""
    answer: Annotated[str, Meta(description="Slurm's message.")] = ""


KINDS: Final = (
    EventKind("action.intended", "A rule wants something done.", ActionStep),
    EventKind("action.approved", "A person agreed to an action that needs it.", ActionStep),
    EventKind("action.refused", "A person did not agree.", ActionStep),
    EventKind("action.sent", "An action is about to be sent to Slurm or to the mail server.", ActionStep),
    EventKind(
        "action.confirmed", "Slurm shows that the action was done, or the mail server accepted the mail.", ActionStep
    ),
    EventKind("action.failed", "The action was not done, or its result is unknown; it is not sent again.", ActionStep),
    EventKind("action.moot", "Nothing was left to do: nothing was sent, or it had no effect.", ActionStep),
    EventKind("action.expired", "Nobody took the action in time.", ActionStep),
)
