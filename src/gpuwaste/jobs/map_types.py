"""The types of GET /v1/map: which run holds which GPUs of which node, according to slurmctld."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document

_Small = Annotated[int, Meta(ge=0, lt=2**40)]


class HeldOnNode(Struct, frozen=True):
    """What a run holds on one node."""

    positions: Annotated[
        tuple[_Small, ...],
        Meta(description="Positions in the node's GPU list (IDX); empty for a run that has ended."),
    ]
    shards: Annotated[_Small, Meta(description="Shares of GPUs.")] = 0


class MapRun(Struct, frozen=True):
    """One run in the cluster-wide map."""

    job_id: int
    start: Annotated[_Small, Meta(description="UTC seconds.")]
    restarts: Annotated[_Small | None, Meta(description="How often it was requeued; null: not known.")]
    state: Annotated[str, Meta(description="As Slurm has it.")]
    suspended: bool
    nodes: Annotated[Mapping[str, HeldOnNode], Meta(description="What it holds, by NodeName.")]


class MapAnswer(Document, frozen=True):
    """The requested runs; none where Slurm has no such run, or it has not started yet."""

    jobs: list[MapRun]
