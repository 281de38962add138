"""Family site: what other systems of the site report through inlets. An inlet's file may declare further kinds."""

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number
from gpuwaste.jobs.events.event_kind import EventKind

Name = Annotated[str, Meta(min_length=1, max_length=256)]
Text = Annotated[str, Meta(max_length=1024)]
Texts = Annotated[tuple[Name, ...], Meta(max_length=256)]
Ratio = Annotated[float, Meta(ge=0, le=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FromSite:
    """What the hub adds to an event of an inlet: the time of the event itself is when the hub took it."""

    cluster: str
    inlet: Annotated[str, Meta(description="The name of the inlet's file.")]
    source: Annotated[str, Meta(description="`source` as it was sent.")]
    sent_id: Annotated[str, Meta(description="`id` as it was sent; the same source and id: a repetition.")]
    sent_time: Annotated[str, Meta(description="`time` as it was sent, empty: none. gpuwaste does not use it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem(FromSite):
    """A file system."""

    file_system: Annotated[Name, Meta(description="Such as /scratch.")]
    used_ratio: Annotated[Ratio | None, Meta(description="Used share, 0 to 1; null: not known.")] = None
    users: Annotated[Texts, Meta(description="Users with this quota; empty: all.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooling(FromSite):
    """A place that is cooled."""

    place: Annotated[Name, Meta(description="A room, row or rack.")]
    celsius: Annotated[Number | None, Meta(description="Temperature there; null: not known.")] = None
    nodes: Annotated[Texts, Meta(description="Nodes there, as Slurm writes lists of them; empty: not known.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance(FromSite):
    """A maintenance."""

    what: Name
    nodes: Annotated[Texts, Meta(description="Nodes, as Slurm writes lists of them; empty: the whole cluster.")] = ()
    until_utc: Annotated[Int64 | None, Meta(description="Planned end, UTC seconds; null: not known.")] = None


KINDS: Final = (
    EventKind("site.fs_full", "A file system is full, or nearly.", FileSystem),
    EventKind("site.fs_free", "A file system that was full has space again.", FileSystem),
    EventKind("site.cooling_low", "The cooling of a place is not enough.", Cooling),
    EventKind("site.cooling_normal", "The cooling of a place is enough again.", Cooling),
    EventKind("site.maintenance_begin", "A maintenance begins.", Maintenance),
    EventKind("site.maintenance_end", "A maintenance has ended.", Maintenance),
)
