"""Another type of GPU, in the job's own partition or in another one that has it."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.slurm.submit.gpu_items import GPU_OPTIONS, GpuRequest, tasks_of

RANK: Final = 6
_MOST: Final = 3
_BY_TASK: Final = ("ntasks", "gpus-per-task")


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return a request for each other type with enough of them on a node; none unless a single type is requested."""
    request = asked.request
    option = next((name for name in GPU_OPTIONS if name.startswith("--") and name[2:] in asked.options), "")
    if not option or not request.gpus or not request.gpu_type or "," in request.gpu_type:
        return
    on_a_node = -(-request.gpus // (request.nodes or 1))
    found: dict[str, str] = {}
    for partition in (asked.partition, *sorted(asked.site.partitions)):
        for kind, count in sorted(asked.site.types(partition).items()):
            if kind != request.gpu_type and count >= on_a_node:
                found.setdefault(kind, partition)
    ntasks, per_task = (asked.options[name].value if name in asked.options else None for name in _BY_TASK)
    tasks = tasks_of(ntasks, per_task, request.gpus)
    for kind, partition in list(found.items())[:_MOST]:
        words = GpuRequest(option, kind, tasks).line(request.gpus, on_a_node).removeprefix("#SBATCH ").split()
        place = () if partition == asked.partition else (f"--partition={partition}",)
        text = f"{kind} instead of {request.gpu_type}: memory, speed and run time differ"
        yield RequestCandidate(
            "gpu_types", f"{kind} GPUs", (*words, *place), text, needs=f"a program that runs on {kind}"
        )
