"""The options that request another type of GPU, in the form that the submission has."""

from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.slurm.submit.gpu_items import GPU_OPTIONS, GpuRequest, tasks_of

_BY_TASK = ("ntasks", "gpus-per-task")


def typed_gpus(asked: PlanRequest, kind: str) -> tuple[str, ...]:
    """Return the options for the same number of GPUs of a type; none where the submission has no option for GPUs."""
    request = asked.request
    option = next((name for name in GPU_OPTIONS if name.startswith("--") and name[2:] in asked.options), "")
    if not option:
        return ()
    ntasks, per_task = (asked.options[name].value if name in asked.options else None for name in _BY_TASK)
    tasks = tasks_of(ntasks, per_task, request.gpus)
    line = GpuRequest(option, kind, tasks).line(request.gpus, -(-request.gpus // (request.nodes or 1)))
    return tuple(line.removeprefix("#SBATCH ").split())
