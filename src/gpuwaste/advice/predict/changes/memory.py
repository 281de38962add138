"""Less memory, for jobs of one task on one node: accounting has only the memory of a job's largest task."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gpuwaste.advice.predict.changes import ChangeProposal, asked, gpus, safe
from gpuwaste.advice.predict.prediction_types import TargetPrediction
from gpuwaste.core.units import format_size
from gpuwaste.slurm.submit.friendly_amounts import friendly_gib
from gpuwaste.slurm.submit.job_request import JobRequest

LEAST: Final = 0.95
HEADROOM: Final = 1.2  # accounting samples memory: a peak between two samples is missing
GAIN: Final = 0.7
_GIB: Final = 1 << 30
_TASKS: Final = frozenset({"ntasks", "ntasks-per-node", "ntasks-per-gpu", "ntasks-per-socket", "nodes"})


def propose(request: JobRequest, said: Mapping[str, TargetPrediction]) -> ChangeProposal | None:
    """Return a request for less memory where that is a clear gain."""
    memory = said.get("memory")
    found = safe(memory, LEAST)
    if memory is None or found is None or not request.mem_b:
        return None
    gib = friendly_gib(found[1] * HEADROOM)
    if gib * _GIB > GAIN * request.mem_b or not _one_task(request):
        return None
    return ChangeProposal(
        request=replace(request, mem_b=gib * _GIB),
        option=_line(request, gib, said),
        text=f"{found[0] * 100:g} of 100 such jobs use at most {format_size(found[1])}; "
        f"you requested {format_size(request.mem_b)}",
        before={"mem_b": float(request.mem_b)},
        after={"mem_b": float(gib * _GIB)},
    )


def _one_task(request: JobRequest) -> bool:
    if (request.nodes or 1) > 1:
        return False
    if request.script is None:
        return request.cpus in {None, 1}
    options = asked(request)
    return bool(options) and all(options[name].value in {"1", None} for name in _TASKS & options.keys())


def _line(request: JobRequest, gib: int, said: Mapping[str, TargetPrediction]) -> str:
    """Return the line in the form of the script's option: per CPU, or per GPU of the proposed ones."""
    options = asked(request)
    if "mem-per-cpu" in options and request.cpus:
        return f"#SBATCH --mem-per-cpu={math.ceil(gib * 1024 / request.cpus)}M"
    if "mem-per-gpu" in options and request.gpus:
        fewer = gpus.propose(request, said)
        return f"#SBATCH --mem-per-gpu={math.ceil(gib * 1024 / (fewer.request if fewer else request).gpus)}M"
    return f"#SBATCH --mem={gib}G"
