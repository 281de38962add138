"""Family rule: what the site's rules do, or would do."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number, Whole
from gpuwaste.jobs.events.event_kind import EventKind


@dataclass(frozen=True, slots=True)
class RuleFired:
    """A step of a rule for one run or node."""

    cluster: str
    rule: str
    rule_hash: Annotated[str, Meta(description="Hash of the rule's file.")]
    mode: Literal["observe", "notify", "act"]
    step: Annotated[Whole, Meta(description="Number of the [[do]] table, from 1.")]
    action: Annotated[str, Meta(description="The action, such as notify.")]
    done: Annotated[bool, Meta(description="false: only recorded, the rule's mode does not let it be done.")]
    subject: Annotated[str, Meta(description="The run's key, node/NAME or model/NAME.")]
    user: Annotated[str, Meta(description="Empty for a node.")]
    account: str
    intent: Annotated[str, Meta(description="Id of the action that was intended, or would have been.")]
    at: Annotated[Int64, Meta(description="UTC seconds.")]
    facts: Annotated[dict[str, Any], Meta(description="The facts that the rule saw.")]
    campaign: Annotated[str, Meta(description="The campaign that holds the step back; empty: none.")] = ""


@dataclass(frozen=True, slots=True)
class RuleDemoted:
    """A rule that went back from act to notify, since too many of the runs that it hit were misjudged."""

    rule: str
    rule_hash: Annotated[str, Meta(description="Hash of the rule's file.")]
    judged: Annotated[Whole, Meta(description="Runs whose outcome is known.")]
    wrong: Annotated[Whole, Meta(description="Runs of these that were misjudged.")]
    precision: Annotated[Number, Meta(description="0 to 1.")]
    floor: Annotated[Number, Meta(description="The rule's precision_floor, 0 to 1.")]


KINDS: Final = (
    EventKind("rule.fired", "A step of a rule is done, or would be in mode act.", RuleFired),
    EventKind("rule.demoted", "A rule went back to mode notify: its live precision is below its floor.", RuleDemoted),
)
