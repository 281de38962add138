"""Fewer GPUs: as many as the job will use, requested by the option that the script has."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gpuwaste.advice.predict.changes import ChangeProposal, asked, safe
from gpuwaste.advice.predict.prediction_types import TargetPrediction
from gpuwaste.advice.predict.vector_words import number
from gpuwaste.slurm.submit.gpu_items import GPU_OPTIONS, GpuRequest, tasks_of
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch_options import Given

LEAST: Final = 0.9
_MIB: Final = 1 << 20
_DIGITS: Final = 5
_OF_HISTORY: Final = 0.5  # history looks only at the last job
_BY_JOB: Final = frozenset({"-G", "--gpus", "--gpus-per-task"})


def propose(request: JobRequest, said: Mapping[str, TargetPrediction]) -> ChangeProposal | None:
    """Return the request for the GPUs that will be used, where that is fewer."""
    needed = said.get("gpus_needed")
    found = safe(needed, LEAST if needed and needed.source != "history" else _OF_HISTORY)
    if needed is None or found is None or not request.gpus:
        return None
    nodes = request.nodes or 1
    used = math.ceil(found[1] - 0.05)  # a quantile of 1.04 GPUs is one GPU
    if used >= request.gpus:
        return None  # before the script is read, which takes time
    options = asked(request)
    option = _option(request, options)
    on_a_node = math.ceil(used / nodes)
    whole = used if option.option in _BY_JOB else on_a_node * nodes
    kept = _kept(request, options, whole)
    if whole >= request.gpus or (kept and not whole):
        return None
    expected = f"{number(found[0] * 100)} of 100 such jobs use at most {used}"
    jobs = "such job used" if needed.basis == 1 else f"{needed.basis} such jobs used at most"
    text = f"your last {jobs} {used}" if needed.source == "history" else expected
    return ChangeProposal(
        request=replace(request, gpus=whole, gpu_type=request.gpu_type if whole else ""),
        option=" ".join((option.line(whole, on_a_node), *kept)) if whole else option.none(),
        text=f"{text} of {request.gpus} GPUs",
        before={"gpus": float(request.gpus)},
        after={"gpus": float(whole)},
    )


def _kept(request: JobRequest, options: Mapping[str, Given], gpus: int) -> list[str]:
    """Return what the script requests per GPU, so that fewer GPUs keep the same memory and CPUs."""
    kept = []
    if "mem-per-gpu" in options and request.mem_b:
        kept.append(f"--mem-per-gpu={math.ceil(request.mem_b / _MIB / max(1, gpus))}M")
    each = options["cpus-per-gpu"].value if "cpus-per-gpu" in options else None
    if each and each.isascii() and each.isdecimal() and len(each) <= _DIGITS:
        kept.append(f"--cpus-per-gpu={math.ceil(int(each) * request.gpus / max(1, gpus))}")
    return kept


def _option(request: JobRequest, options: Mapping[str, Given]) -> GpuRequest:
    """Return the option of the script, else --gres."""
    kind = request.gpu_type if "," not in request.gpu_type else ""
    ntasks, per_task = (options[name].value if name in options else None for name in ("ntasks", "gpus-per-task"))
    for name in GPU_OPTIONS:
        if name.startswith("--") and name[2:] in options:
            return GpuRequest(name, kind, tasks_of(ntasks, per_task, request.gpus))
    return GpuRequest("--gres", kind)
