"""Family gpu: GPUs that fail."""

from typing import Annotated, Final

from msgspec import Meta

from gpuwaste.core.codec import Int64, Number, Whole
from gpuwaste.jobs.events.event_kind import EventKind, OfRun


class OfHeldGpu(OfRun, frozen=True):
    """The first fields of data about a GPU of a run."""

    user: str
    account: str
    node: str
    gpu_uuid: str


class GpuLost(OfHeldGpu, frozen=True):
    """A GPU that the driver lost while a run held it."""

    since_utc: Annotated[Int64, Meta(description="The hour in which it was first lost, UTC seconds.")]
    lost_s: Annotated[Number, Meta(description="Duration so far when the event was sent, seconds.")]


class GpuXid(OfHeldGpu, frozen=True):
    """Xid errors of a GPU while a run held it."""

    xid: Annotated[Whole, Meta(description="NVIDIA's number of the error.")]
    hour_utc: Annotated[Int64, Meta(description="The hour in which they were seen, UTC seconds.")]
    count: Annotated[Whole, Meta(description="Number of errors reported when the event was sent.")]


KINDS: Final = (
    EventKind("gpu.lost", "The driver lost a GPU while a run held it: it fell off the bus or needs a reset.", GpuLost),
    EventKind("gpu.xid", "A GPU had Xid errors while a run held it: one event for each number and hour.", GpuXid),
)
