"""Another partition with the GPUs that the job requests; whether the user may use it is checked afterwards."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 7
_MOST: Final = 4


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return a request for each other partition that is up, whose nodes have enough GPUs of the type."""
    request, site = asked.request, asked.site
    on_a_node = -(-request.gpus // (request.nodes or 1))
    found = 0
    for name, partition in sorted(site.partitions.items()):
        if name in request.partition.split(",") or not partition.nodes or found == _MOST:
            continue
        has = site.types(name).get(request.gpu_type, 0) if request.gpu_type else site.gpus(name)
        gpus_match = has >= on_a_node if request.gpus else site.gpus(name) == 0
        if gpus_match and partition.state == "UP":
            found += 1
            text = "allocates entire nodes: other jobs cannot share them" if partition.whole_nodes else ""
            yield RequestCandidate("partitions", f"partition {name}", (f"--partition={name}",), text)
