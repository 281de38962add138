"""A chosen request as its user hands it over: lines of a batch script, and the command of `gpuwaste plan`."""

from collections.abc import Mapping
from math import ceil
from typing import Final

from gpuwaste.estimate.choices import Goal
from gpuwaste.estimate.estimate_types import EstimateChoice
from gpuwaste.slurm.submit.program_tie import ProgramTie, comment_of

_DAY_MIN: Final = 24 * 60


def script_lines(best: EstimateChoice, gres: str, fingerprint: str) -> list[str]:
    """Return the #SBATCH lines of a request; the comment ties its runs to the program."""
    lines = [f"--gres={gres}", comment_of(ProgramTie(fingerprint, best.steps))]
    limit = _limit(best)
    return [f"#SBATCH {line}" for line in (lines if limit is None else [lines[0], f"--time={limit}", lines[1]])]


def plan_command(best: EstimateChoice, gres: str, goal: Goal) -> str:
    """Return the command that plans a script with the request."""
    limit = _limit(best)
    words = ["gpuwaste plan", "" if goal == "smallest" else f"--goal {goal}", "--", f"--gres={gres}"]
    words += [] if limit is None else [f"--time={limit}"]
    return " ".join(word for word in [*words, "job.sbatch"] if word)


def gres_of(best: EstimateChoice, named: Mapping[str, str]) -> str:
    """Return the gres of a request, with the type's name of `named` where it is there."""
    kind = named.get(best.gpu, best.gpu)
    return f"gpu:{f'{kind}_{best.mig}' if best.mig else kind}:{best.gpus}"


def _limit(best: EstimateChoice) -> str | None:
    """Return the upper end of the run's interval as Slurm's days-hours:minutes, in whole minutes."""
    seconds = best.run_high_s if best.run_high_s is not None else best.run_s
    if seconds is None:
        return None
    minutes = max(1, ceil(seconds / 60))
    return f"{minutes // _DAY_MIN}-{minutes % _DAY_MIN // 60:02}:{minutes % 60:02}"
