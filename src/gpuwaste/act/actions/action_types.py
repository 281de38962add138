"""The types of actions: one action from a rule's intent to its end, and the messages between hub, people and actor.

ActionReport has the fields that an actor may set; the event's type (jobs/events/kinds/action) outlives an action here.
"""

import hashlib
from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta, Struct, field

from gpuwaste.core.fields import Document, MaybeUtc, Name, Number, Utc
from gpuwaste.slurm.run_key import RunKey

Approval = Literal["none", "person"]
ActionStatus = Literal["intended", "approved", "sent", "confirmed", "failed", "moot", "refused", "expired"]
"""The status of an action, from the rule's intent to one of five ends (CONTRACTS.md, "Action")."""
STATUSES: Final[tuple[str, ...]] = get_args(ActionStatus)
Outcome = Literal["sent", "confirmed", "failed", "moot"]
MAX_ACTIONS: Final = 10_000


@dataclass(frozen=True)
class ActionQuestion:
    """Which actions; None is any, for the window the last 60 days. Times are UTC seconds."""

    status: Annotated[ActionStatus | None, Meta(description="only this one")] = None
    rule: Annotated[Name | None, Meta(description="only actions of this rule")] = None
    user: Name | None = None
    start: Number | None = None
    end: Number | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_ACTIONS)] = 1000


class ActionEntry(Struct, kw_only=True, frozen=True):
    """An action with its history."""

    id: str
    rule: str
    rule_hash: Annotated[str, Meta(description="Hash of the rule's file when the rule decided.")]
    kind: Annotated[str, Meta(description="Kind of action: cancel, hold ...")]
    subject: Annotated[str, Meta(description="The run's key, node/NAME or model/NAME.")]
    cluster: str = ""
    job_id: Annotated[int | None, Meta(description="null: the action is not about a run.")] = field(
        default=None, name="jobid"
    )
    start: MaybeUtc = None
    user: str = ""
    account: str = ""
    options: dict[str, str] = {}
    facts: Annotated[str, Meta(description="Facts on which the rule decided, as JSON.")] = ""
    approve: Annotated[Approval, Meta(description="person: a person must approve the action first.")]
    decided: Utc
    expires: Annotated[int, Meta(description="UTC seconds after which it is not sent.")]
    status: ActionStatus
    since: Annotated[int, Meta(description="When it got this status, UTC seconds.")]
    person: Annotated[str, Meta(description="Who approved or refused it.")] = ""
    person_at: MaybeUtc = None
    plan: Annotated[dict[str, str], Meta(description="What the actor read in Slurm before it sent the action.")] = {}
    sends: Annotated[int, Meta(description="Number of times it was sent.")] = 0
    sent: MaybeUtc = None
    reason: Annotated[str, Meta(description="Why it has this status.")] = ""
    answer: Annotated[str, Meta(description="The message of Slurm or of the mail server.")] = ""
    run_state: Annotated[str, Meta(description="The run's state in accounting; empty: not known.")] = ""
    run_end: MaybeUtc = None

    @property
    def run(self) -> RunKey | None:
        """The run that it is about, None for a node or a model."""
        if self.job_id is None or self.start is None:
            return None
        return RunKey(self.cluster, self.job_id, self.start)


class ActionsDocument(Document, kw_only=True, frozen=True):
    """Actions, the newest first."""

    document: Literal["actions"] = "actions"
    schema: int = 1
    generated: Utc
    stopped: Annotated[int | None, Meta(description="Time of the stop, UTC seconds; null: not stopped.")]
    actor: Annotated[
        str, Meta(description="The actor that may act now; empty: no actor has reached the hub for a minute.")
    ]
    actions: list[ActionEntry]


class ActionDocument(Document, kw_only=True, frozen=True):
    """One action."""

    document: Literal["action"] = "action"
    schema: int = 1
    action: ActionEntry


class ActionClaim(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/actions/claim."""

    actor: Annotated[str, Meta(min_length=1, max_length=200, description="The actor's name, the same after a restart.")]
    kinds: Annotated[
        list[Annotated[str, Meta(max_length=64)]], Meta(max_length=64, description="Kinds of actions that it may take.")
    ]


class ActionLent(Struct, kw_only=True, frozen=True):
    """The answer to a claim: the next action, if any."""

    now: Annotated[int, Meta(description="The hub's time, UTC seconds.")]
    lease_s: Annotated[int, Meta(description="Time for which no other actor gets an action, seconds.")]
    holder: Annotated[str, Meta(description="The actor that may act; another one gets no action.")]
    stopped: bool
    action: ActionEntry | None = None


class ActionReport(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/actions/ID/step: what the actor is about to do, or the outcome."""

    actor: Annotated[str, Meta(min_length=1, max_length=200)]
    status: Outcome
    reason: Annotated[str, Meta(max_length=2000)] = ""
    answer: Annotated[str, Meta(max_length=8000)] = ""
    plan: Annotated[dict[str, str] | None, Meta(description="With status sent.")] = None


class ActionTaken(Struct, kw_only=True, frozen=True):
    """The answer to a report."""

    taken: Annotated[bool, Meta(description="false: do not send the action, or the report changed nothing.")]
    status: ActionStatus
    lease_s: Annotated[int, Meta(description="Time from now for which no other actor gets an action, seconds.")]
    reason: str = ""


class ActionsStop(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/actions/stop."""

    stop: Annotated[bool, Meta(description="false lifts a stop.")]


class ActionsStopped(Struct, kw_only=True, frozen=True):
    """The answer: whether actions are stopped now."""

    stopped: Annotated[int | None, Meta(description="Time of the stop, UTC seconds; null: not stopped.")]


def action_id(rule: str, kind: str, subject: str, unique: str) -> str:
    """Return an action's id: one step of one rule for one subject is one action, however often decided."""
    return hashlib.sha256(f"{rule}\0{kind}\0{subject}\0{unique}".encode("utf-8", "backslashreplace")).hexdigest()
