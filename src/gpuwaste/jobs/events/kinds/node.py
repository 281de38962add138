"""Family node: agents that stop reporting."""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number
from gpuwaste.jobs.events.event_kind import EventKind


@dataclass(frozen=True, slots=True)
class NodeHeard:
    """A node and when its agent was last heard of."""

    cluster: str
    node: str
    heard_utc: Annotated[Int64, Meta(description="When the node's last rows arrived, UTC seconds.")]
    silent_s: Annotated[Number, Meta(description="Seconds without any row.")]


KINDS: Final = (
    EventKind("node.silent", "A node's agent has sent nothing for longer than it may.", NodeHeard),
    EventKind("node.back", "A node that was silent sends again.", NodeHeard),
)
