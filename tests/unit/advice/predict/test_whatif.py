"""Changes: each is scored again, has the option that the script uses, and is told only where it helps."""

from dataclasses import replace

import pytest
from tests.unit.advice.predict.site_of_predict import GIB, TRAIN, FormulaModel, Run, history

from gpuwaste.advice.predict.changes import proposers
from gpuwaste.advice.predict.prediction_types import RequestChange
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.submit.friendly_amounts import friendly_gib, friendly_s
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.slurm.submit.sbatch import read_submission

FITTING = FormulaModel(
    bias=-3.0,
    walltime_s=(1200, 1500, 1800, 2300),
    memory_b=(2 * GIB, 3 * GIB, 4 * GIB, 5 * GIB),
    gpus=(1, 1, 1),
)


def _changes(
    model: FormulaModel | None, request: JobRequest, state: HistoryState | None = None
) -> dict[str, RequestChange]:
    said = Predictor(model, state or HistoryState()).predict(request)
    return {change.option.split("=")[0]: change for change in said.changes}


def _script(directives: str) -> str:
    return f"#!/bin/bash\n#SBATCH {directives}\npython train.py\n"


def test_every_change_is_found() -> None:
    """A file in predict/changes is a change."""
    assert set(proposers()) == {"gpus", "memory", "time_limit"}


def test_a_job_that_asks_for_far_too_much_gets_three_lines() -> None:
    """Time, GPUs and memory, each with its amount before and after."""
    request = replace(TRAIN, script=_script("--gres=gpu:a100:4 -c8 --mem=64G -t 12:00:00"))
    found = _changes(FITTING, request)
    assert [change.option for change in found.values()] == [
        "#SBATCH --gres=gpu:a100:1",
        "#SBATCH --mem=6G",
        "#SBATCH --time=00:40:00",
    ]
    limit = found["#SBATCH --time"]
    assert (limit.before["time_limit_s"], limit.after["time_limit_s"]) == (12 * HOUR_S, 2400)
    assert limit.text == "99 of 100 such jobs end within 38 min; you requested 12 h"
    assert found["#SBATCH --gres"].after["gpus"] == 1
    assert found["#SBATCH --mem"].after["mem_b"] == 6 * GIB


def test_fewer_gpus_keep_the_memory_and_the_cpus_that_the_script_asks_for_each() -> None:
    """With amounts for each GPU a quarter of the GPUs comes with four times of each: alone, and with less memory."""
    directives = "--gres=gpu:a100:4 --mem-per-gpu=16G --cpus-per-gpu=2 -t 12:00:00 -n1"
    request = replace(TRAIN, script=_script(directives), cpus=1)
    found = _changes(FITTING, request)
    fewer, memory = (found[name].option for name in ("#SBATCH --gres", "#SBATCH --mem-per-gpu"))
    assert fewer == "#SBATCH --gres=gpu:a100:1 --mem-per-gpu=65536M --cpus-per-gpu=8"
    assert memory == "#SBATCH --mem-per-gpu=6144M"
    (both,) = read_submission(_script(f"{directives}\n{fewer}\n{memory}")).requests
    assert (both.gpus, both.mem_b) == (1, 6 * GIB)


def test_changes_are_taken_alone_or_all_together() -> None:
    """Any of the lines, and all of them, in the script: what is asked for is what each change says."""
    directives = "--gres=gpu:a100:4 -c8 --mem=64G -t 12:00:00"
    found = _changes(FITTING, replace(TRAIN, script=_script(directives)))
    lines = [change.option for change in found.values()]
    (together,) = read_submission(_script("\n".join([directives, *lines]))).requests
    assert (together.gpus, together.mem_b, together.time_limit_s) == (1, 6 * GIB, 2400)


@pytest.mark.parametrize(
    ("directives", "option"),
    [
        ("--gres=gpu:a100:4 -c8", "#SBATCH --gres=gpu:a100:1"),
        ("--gpus=a100:4 -c8", "#SBATCH --gpus=a100:1"),
        ("-G a100:4 -c8", "#SBATCH --gpus=a100:1"),
        ("--gpus-per-node=a100:4 -c8", "#SBATCH --gpus-per-node=a100:1"),
        ("--gpus-per-task=a100:4 -n1 -c8", "#SBATCH --ntasks=1 --gpus-per-task=a100:1"),
        ("--foo", "#SBATCH --gres=gpu:a100:1"),
    ],
)
def test_the_option_is_the_one_that_the_script_uses(directives: str, option: str) -> None:
    """Each way to ask for GPUs; a script that cannot be read gets --gres."""
    request = replace(TRAIN, script=_script(directives))
    assert option in [change.option for change in Predictor(FITTING, HistoryState()).predict(request).changes]


def test_memory_for_each_cpu_is_asked_for_so() -> None:
    """--mem-per-cpu stays --mem-per-cpu."""
    request = replace(TRAIN, gpus=0, gpu_type="", script=_script("-c8 --mem-per-cpu=8G"))
    assert "#SBATCH --mem-per-cpu" in _changes(FITTING, request)
    assert _changes(FITTING, request)["#SBATCH --mem-per-cpu"].option.endswith("=768M")


def test_memory_of_several_tasks_is_left_alone() -> None:
    """What is known is one task's memory: a job of several tasks, or of unknown ones, gets no such line."""
    assert "#SBATCH --mem" not in _changes(FITTING, replace(TRAIN, script=_script("-n8 --mem=64G")))
    assert "#SBATCH --mem" not in _changes(FITTING, TRAIN)
    assert "#SBATCH --mem" in _changes(FITTING, replace(TRAIN, cpus=1))


def test_a_request_that_fits_gets_nothing() -> None:
    """Time, GPUs and memory near what is expected."""
    request = replace(TRAIN, gpus=1, time_limit_s=2400, mem_b=6 * GIB, cpus=1)
    assert _changes(FITTING, request) == {}


def test_a_change_that_makes_failure_likelier_is_not_told() -> None:
    """A model in which a short limit fails: the limit stays, the GPUs do not."""
    risky = replace_logits(FITTING, {"limit": -0.00005}, bias=-0.5)
    assert set(_changes(risky, TRAIN)) == {"#SBATCH --gres"}


def replace_logits(model: FormulaModel, logits: dict[str, float], bias: float) -> FormulaModel:
    """Return the model with another formula of failure."""
    return FormulaModel(logits, bias, model.walltime_s, model.memory_b, model.gpus)


def test_a_job_that_likely_fails_gets_no_smaller_request() -> None:
    """Runs that failed early say nothing of what the job needs when it works."""
    assert _changes(replace_logits(FITTING, {}, bias=1.0), TRAIN) == {}
    assert _changes(None, TRAIN, history([Run(Outcome.FAILED)] * 8)) == {}


def test_history_shortens_a_limit_that_no_run_came_near() -> None:
    """Eight runs of at most 27 minutes and a limit of 12 hours; not where one of them was ended by its limit."""
    runs = [Run(run_s=1200.0 + 60 * n) for n in range(8)]
    found = _changes(None, TRAIN, history(runs))["#SBATCH --time"]
    assert found.option == "#SBATCH --time=00:30:00"
    assert found.text == "the longest of your last 8 such jobs ran 27 min; you requested 12 h"
    late = [*runs[:7], Run(Outcome.TIMEOUT, run_s=12.0 * HOUR_S)]
    assert "#SBATCH --time" not in _changes(None, TRAIN, history(late))


def test_history_takes_gpus_that_the_last_job_left() -> None:
    """One of four GPUs worked; a job that used none is shown the line for none."""
    assert _changes(None, TRAIN, history([Run(active=1)] * 3))["#SBATCH --gres"].option == "#SBATCH --gres=gpu:a100:1"
    assert _changes(None, TRAIN, history([Run(active=0)] * 3))["#SBATCH --gres"].option == "#SBATCH --gres=none"


def test_gpus_on_several_nodes_are_whole_on_each() -> None:
    """Three of eight GPUs on two nodes: two on each node by --gres."""
    request = replace(TRAIN, nodes=2, gpus=8)
    model = FormulaModel(bias=-3, gpus=(3, 3, 3))
    change = _changes(model, request)["#SBATCH --gres"]
    assert (change.option, change.after["gpus"]) == ("#SBATCH --gres=gpu:a100:2", 4)


@pytest.mark.parametrize(
    ("seconds", "friendly"), [(1, 300), (300, 300), (301, 600), (5401, 7200), (86400, 86400), (86401, 129600)]
)
def test_times_are_rounded_up_to_what_people_write(seconds: float, friendly: int) -> None:
    """Never below what is needed."""
    assert friendly_s(seconds) == friendly


def test_sizes_are_rounded_up() -> None:
    """Whole GiB, then steps, then 64 GiB at a time."""
    assert [friendly_gib(n * GIB) for n in (0.1, 1, 4.5, 33, 129)] == [1, 1, 6, 40, 192]
