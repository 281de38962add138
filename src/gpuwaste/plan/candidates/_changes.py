"""What a prediction's changes are as options of sbatch."""

import shlex
from typing import Final

from gpuwaste.advice.predict.prediction_types import RequestChange
from gpuwaste.plan.plan_request import PlanRequest

GPUS: Final = "gpus"
TIME: Final = "time_limit_s"
MEMORY: Final = "mem_b"


def change_of(asked: PlanRequest, amount: str) -> RequestChange | None:
    """Return the change of that amount (a key of its `after`), None where the model and history propose none."""
    return next((one for one in asked.changes if amount in one.after and amount in one.before), None)


def options_of(change: RequestChange) -> tuple[str, ...]:
    """Return the words of its #SBATCH line."""
    return tuple(shlex.split(change.option.removeprefix("#SBATCH ")))
