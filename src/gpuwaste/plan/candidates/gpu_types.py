"""Another type of GPU, in the job's own partition or in another one that has it."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.candidates._gpu_option import typed_gpus
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 6
_MOST: Final = 3


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return a request for each other type with enough of them on a node; none unless a single type is requested."""
    request = asked.request
    if not typed_gpus(asked, request.gpu_type) or not request.gpus or not request.gpu_type or "," in request.gpu_type:
        return
    on_a_node = -(-request.gpus // (request.nodes or 1))
    found: dict[str, str] = {}
    for partition in (asked.partition, *sorted(asked.site.partitions)):
        for kind, count in sorted(asked.site.types(partition).items()):
            if kind != request.gpu_type and count >= on_a_node:
                found.setdefault(kind, partition)
    for kind, partition in list(found.items())[:_MOST]:
        words = typed_gpus(asked, kind)
        place = () if partition == asked.partition else (f"--partition={partition}",)
        text = f"{kind} instead of {request.gpu_type}: memory, speed and run time differ"
        yield RequestCandidate(
            "gpu_types", f"{kind} GPUs", (*words, *place), text, needs=f"a program that runs on {kind}"
        )
