"""Which estimator speaks: by measured error on past runs, each predicted from what was known before it."""

from typing import Any

import pytest

from gpuwaste.estimate.estimate_types import StepTime
from gpuwaste.estimate.hybrid import EstimatedJob, EstimatedRunTime, spoken
from gpuwaste.jobs.program_estimate import ProgramRun

JOB = EstimatedJob("h100", 1, 1000, "train")
HISTORY = EstimatedRunTime("history", 900.0, 100.0, 2000.0, 0.8)


def run(at: int, run_s: int, *, steps: int | None = 1000, **more: Any) -> ProgramRun:
    """Return a run that was submitted at an hour and ended in it."""
    values: dict[str, Any] = {"gpus": 1, "gpu_type": "h100", "name": "train"} | more
    return ProgramRun(submit=at * 3600, end=at * 3600 + run_s, run_s=run_s, steps=steps, **values)


def white(step_s: float) -> Any:
    """Return a white box that says so much of a step on every GPU type."""
    return lambda job: StepTime(
        gpu=job.gpu_type, step_s=step_s, low_s=step_s * 0.8, high_s=step_s * 1.25, basis="measured"
    )


def test_declared_steps_and_run_times_are_step_times() -> None:
    """Runs of 100 and of 1,000 steps give one step's time, and the range of the runs is the interval."""
    found = spoken(JOB, [run(1, 100, steps=100), run(2, 1100), run(3, 600, steps=500)], None, None).time
    assert found is not None
    assert (found.estimator, found.step_s, found.run_s) == ("own runs", 1.1, 1100)
    assert (found.low_s, found.high_s, found.coverage, found.runs) == (1000, 1200, 0.5, 3)


def test_one_run_has_no_interval() -> None:
    """What one run took is said, and no range is made up around it."""
    found = spoken(JOB, [run(1, 1000)], None, None).time
    assert found is not None
    assert (found.run_s, found.low_s, found.high_s, found.coverage) == (1000, None, None, None)


def test_without_runs_the_white_box_speaks_with_its_interval() -> None:
    """The step's interval times the declared steps; one without an interval does not speak."""
    found = spoken(JOB, [], white(0.5), HISTORY).time
    assert found is not None
    assert (found.estimator, found.run_s, found.low_s, found.high_s) == ("white box", 500, 400, 625)
    without = spoken(JOB, [], lambda job: StepTime(gpu=job.gpu_type, step_s=0.5), HISTORY).time
    assert without is HISTORY


def test_public_measurements_come_after_the_history_unless_they_were_better_here() -> None:
    """Nothing shows that they fit this site: they are used where the history has no answer or the others were worse."""

    def times(job: EstimatedJob) -> StepTime:
        return StepTime(gpu=job.gpu_type, step_s=2.0, low_s=1.6, high_s=2.5, public=True)

    assert spoken(JOB, [], times, HISTORY).time is HISTORY
    worse = [run(at, 500 * at, predicted_s=9000.0) for at in range(1, 7)]
    for found in (spoken(JOB, [], times, None).time, spoken(JOB, worse, times, HISTORY).time):
        assert found is not None
        assert (found.estimator, found.run_s) == ("white box", 2000)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (EstimatedJob("h100", 0, 1000), "requests no GPU"),
        (EstimatedJob("", 1, 1000), "the job requests no GPU type"),
        (EstimatedJob("h100", 1), "steps are not declared"),
    ],
)
def test_the_white_box_refuses_in_words(job: EstimatedJob, words: str) -> None:
    """No GPU, an unknown type and no steps give no run time, and the reason."""
    found = spoken(job, [], white(0.5), None)
    assert found.time is None
    assert words in found.refused


def test_several_gpus_have_a_range_without_a_share_of_runs() -> None:
    """The white box answers for the job's GPUs; own runs on as many GPUs go first, those on one GPU do not count."""
    job = EstimatedJob("h100", 4, 1000, "train", nodes=2)
    asked: list[EstimatedJob] = []

    def times(of: EstimatedJob) -> StepTime:
        asked.append(of)
        return StepTime(gpu="h100", step_s=0.5, low_s=0.4, high_s=0.8, basis="4 GPUs: not measured")

    found = spoken(job, [run(1, 900)], times, HISTORY).time
    assert found is not None
    assert (found.estimator, found.run_s, found.low_s, found.high_s, found.coverage) == (
        "white box",
        500,
        400,
        800,
        None,
    )
    assert set(asked) == {job}
    own = spoken(job, [run(1, 900), run(2, 700, gpus=4)], times, HISTORY).time
    assert own is not None
    assert (own.estimator, own.run_s) == ("own runs", 700)


def test_the_smaller_measured_error_speaks() -> None:
    """Even runs are predicted by those before; of uneven ones a white box with half of the error speaks."""
    even, uneven = [run(at, 1000) for at in range(1, 7)], [run(at, 500 * at) for at in range(1, 7)]
    assert spoken(JOB, even, white(2.0), None).time.estimator == "own runs"  # type: ignore[union-attr]
    found = spoken(JOB, uneven, white(2.0), None)
    assert found.time is not None
    assert found.time.estimator == "white box"
    assert [(one.estimator, one.runs) for one in found.errors] == [("own runs", 5), ("white box", 6)]
    assert found.errors[0].error == pytest.approx(0.5)


def test_two_runs_in_common_decide_nothing() -> None:
    """With less than three runs that both were measured on, own runs go first."""
    runs = [run(at, 500 * at) for at in range(1, 4)]
    assert spoken(JOB, runs, white(1.25), None).time.estimator == "own runs"  # type: ignore[union-attr]


def test_history_speaks_where_it_was_better() -> None:
    """The median that was recorded at each submission was right, own runs double each time: history speaks."""
    runs = [run(at, 100 * 2**at, predicted_s=100.0 * 2**at) for at in range(1, 6)]
    found = spoken(JOB, runs, None, HISTORY)
    assert found.time is HISTORY
    assert {one.estimator: one.error for one in found.errors}["history"] == 0


def test_a_run_is_not_predicted_from_what_ended_later() -> None:
    """Eight runs that ran at the same time know nothing of each other: no error of own runs is measured."""
    runs = [ProgramRun(submit=0, end=1000 + n, run_s=1000, steps=1000, gpus=1, gpu_type="h100") for n in range(8)]
    assert [one.estimator for one in spoken(JOB, runs, white(9.9), None).errors] == ["white box"]
    assert spoken(JOB, runs, white(9.9), None).time.estimator == "own runs"  # type: ignore[union-attr]


def test_other_gpus_and_undeclared_runs_are_not_compared() -> None:
    """Runs on another type, on more GPUs, or without steps where steps are asked for are no label."""
    others = [run(1, 10, gpu_type="v100"), run(2, 10, gpus=2), run(3, 10, steps=None)]
    assert spoken(JOB, others, None, None).time is None
    found = spoken(EstimatedJob("nvidia_h100_80gb_hbm3", 1, 1000), [*others, run(4, 700)], None, None).time
    assert found is not None
    assert (found.run_s, found.runs) == (700, 1)


def test_runs_of_the_job_s_name_go_first() -> None:
    """The same program under another name may do other work: it counts where the name has no run."""
    runs = [run(1, 1000), run(2, 5000, name="big")]
    assert spoken(JOB, runs, None, None).time.run_s == 1000  # type: ignore[union-attr]
    assert spoken(EstimatedJob("h100", 1, 1000, "new"), runs, None, None).time.run_s == 3000  # type: ignore[union-attr]
