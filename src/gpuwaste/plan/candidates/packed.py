"""Many small jobs on one GPU: advice only, since no option of sbatch merges many jobs into one."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.core.units import say_percent
from gpuwaste.plan.candidates import RequestCandidate
from gpuwaste.plan.plan_request import PlanRequest

RANK: Final = 10
_LIKELY: Final = 0.5


def propose(asked: PlanRequest) -> Iterable[RequestCandidate]:
    """Return the advice for an array of tasks with one GPU each that such tasks mostly leave idle."""
    idle = asked.target("gpu_underused")
    if asked.request.is_array and asked.request.gpus == 1 and idle is not None and (idle.p or 0.0) >= _LIKELY:
        text = (
            f"{say_percent(idle.p or 0.0)} of such tasks leave the GPU mostly idle: run several of them in one job, "
            "with MPS or shards"
        )
        yield RequestCandidate("packed", "several tasks on a GPU", text=text, advice=True)
