"""The time of a program's step on each GPU type, by the models of step times in use on this host."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.estimate.op_sums import op_sums
from gpuwaste.estimate.program import Program
from gpuwaste.estimate.step_answer import StepTime


def step_times(program: Program, gpus: Iterable[str], models_dir: Path, family: str) -> Mapping[str, StepTime]:
    """Return the time, or why there is none, by GPU type.

    A bundle that cannot be read, or numpy that is not installed, is such a reason: memory is estimated without them.
    """
    from gpuwaste.cli.programs import load_program

    wanted = list(gpus)
    try:
        answers = load_program("gpuwaste.estimate.step_time", "predict", "this host")
        bundles = load_program("gpuwaste.estimate.time_bundle", "predict", "this host")
        models, sums = bundles.times_in_use(models_dir), op_sums(program)
        return {
            gpu: answers.step_time(models, sums, gpu, family=family, unknown_trips=program.unknown_trips)
            for gpu in wanted
        }
    except GpuwasteError as error:
        return {gpu: StepTime(gpu=gpu, refused=str(error)) for gpu in wanted}
