"""What the changes share: how the script asks now, and the quantile that is safe to ask for."""

from collections.abc import Mapping

from gpuwaste.advice.predict.prediction import TargetPrediction
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.submit.request import JobRequest
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_words import Given


def asked(request: JobRequest) -> Mapping[str, Given]:
    """Return the options of the script's component that comes to this request; none without a script."""
    if request.script is None:
        return {}
    try:
        read = read_submission(request.script)
    except GpuwasteError:
        return {}
    for found, options in zip(read.requests, read.options, strict=True):
        if (found.nodes, found.cpus, found.gpus) == (request.nodes, request.cpus, request.gpus):
            return options
    return {}


def safe(said: TargetPrediction | None, least: float) -> tuple[float, float] | None:
    """Return the highest quantile from `least` on as (its level, its value)."""
    levels = [(float(q), value) for q, value in said.quantiles.items() if float(q) >= least] if said else []
    return max(levels) if levels else None


def share_text(level: float, basis: TargetPrediction) -> str:
    """Return how sure a quantile is, as one says it."""
    if basis.source == "history":
        return f"the longest of your last {basis.basis} such jobs"
    return f"{level * 100:g} of 100 such jobs"
