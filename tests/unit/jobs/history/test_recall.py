"""Users' own runs: told one by one or as a table they are the same, and sentences count them exactly."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpuwaste.advice.predict.from_history import gpus_needed, own_sentences
from gpuwaste.advice.predict.predictor import Predictor
from gpuwaste.core.errors import ParseError, StoreError
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import GpuUse, table_of
from gpuwaste.jobs.history.outcome import Outcome, outcome_of
from gpuwaste.jobs.history.recall import RING, Recall
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.histories import made_jobs

T0 = 1_700_000_000
ASK = JobRequest("ann", T0, name="train", gpus=4)


def run(number: int, state: str = "COMPLETED", *, user: str = "ann", name: str = "train", gpus: int = 4) -> JobRecord:
    return JobRecord("gw", number, T0 + number, user=user, name=name, gpus=gpus, start=T0, end=T0 + number, state=state)


def recalled(jobs: list[JobRecord], active: dict[int, int] | None = None, script: str = "") -> Recall:
    recall = Recall()
    for job in jobs:
        recall.ended(job, job.end or 0, outcome_of(job.state, started=True), script)
        if active and job.job_id in active:
            recall.used(job, active[job.job_id])
    return recall


def test_the_last_job_of_a_name_is_the_one_to_read() -> None:
    """Advice points to the user's newest ended job of the same name; nothing of another name, another user, no name."""
    recall = recalled([run(7), run(9), run(8), run(11, name="other"), run(12, user="bob")])
    predictor = Predictor(None, HistoryState(), recall=recall)
    assert predictor.last_job(ASK) == 8  # the last one that was told to end
    assert predictor.last_job(replace(ASK, name="new")) is None
    assert predictor.last_job(replace(ASK, name="")) is None
    assert Predictor(None, HistoryState()).last_job(ASK) is None


def test_a_table_says_what_its_ends_say() -> None:
    """A hub that starts from its store knows the same runs as an advisor that heard of them one by one."""
    jobs = made_jobs(300)
    uses = [
        GpuUse(0.5, job.gpus // 2, 1.0 if job.job_id % 3 else 0.5, job.end or 0) if job.gpus else None for job in jobs
    ]
    table = Recall.of(table_of(jobs, use=uses))
    told = Recall()
    for job, use in sorted(zip(jobs, uses, strict=True), key=lambda pair: (pair[0].end, pair[0].job_id)):
        told.ended(job, job.end or 0, outcome_of(job.state, started=True))
        if use is not None and use.coverage >= 0.8:
            told.used(job, use.gpus_active)
    pairs = {(job.user, job.name) for job in jobs}
    assert {pair: table.runs(*pair) for pair in pairs} == {pair: told.runs(*pair) for pair in pairs}
    assert max(len(told.runs(*pair)) for pair in pairs) == RING


def test_the_last_jobs_are_counted() -> None:
    """Fourteen jobs that used one of four GPUs give the sentence, and what is needed rests on all of them."""
    recall = recalled([run(n) for n in range(14)], dict.fromkeys(range(14), 1))
    assert own_sentences(recall, ASK)["gpus_needed"] == ("your last 14 jobs named train used 1 of 4 GPUs",)
    said = gpus_needed(recall, ASK)
    assert said is not None
    assert (said.basis, said.quantiles) == (14, {"0.5": 1.0})


def test_more_than_the_ring_is_forgotten_run_by_run() -> None:
    """Of twenty jobs the last sixteen count."""
    recall = recalled([run(n) for n in range(20)], dict.fromkeys(range(20), 2))
    assert own_sentences(recall, ASK)["gpu_underused"] == ("your last 16 jobs named train used 2 of 4 GPUs",)


@pytest.mark.parametrize(
    ("active", "text"),
    [
        ({0: 1, 1: 3, 2: 1}, "your last 3 jobs named train used at most 3 of 4 GPUs"),
        ({0: 1, 2: 1}, "2 of your last 3 jobs named train were measured: used 1 of 4 GPUs"),
        ({2: 0}, "1 of your last 3 jobs named train was measured: used 0 of 4 GPUs"),
        ({0: 4, 1: 1, 2: 1}, None),
        ({}, None),
    ],
)
def test_a_sentence_says_no_more_than_was_measured(active: dict[int, int], text: str | None) -> None:
    """Different uses are "at most", unmeasured jobs are told apart, and one that used all makes silence."""
    recall = recalled([run(n) for n in range(3)], active)
    assert own_sentences(recall, ASK).get("gpus_needed") == (None if text is None else (text,))


def test_only_jobs_of_the_same_size_in_a_row_count() -> None:
    """Jobs before the user changed the number of GPUs are another story."""
    jobs = [run(0, gpus=8), run(1), run(2)]
    assert own_sentences(recalled(jobs, {0: 8, 1: 1, 2: 1}), ASK)["gpus_needed"] == (
        "your last 2 jobs named train used 1 of 4 GPUs",
    )


def test_failures_are_counted() -> None:
    """Failed and out of memory are failures, cancelled is none; one job alone makes no count."""
    states = ("FAILED", "OUT_OF_MEMORY", "CANCELLED", "COMPLETED")
    recall = recalled([run(n, state) for n, state in enumerate(states)])
    assert own_sentences(recall, ASK)["failure"] == ("2 of your last 4 jobs named train failed",)
    assert "failure" not in own_sentences(recalled([run(1, "FAILED")]), ASK)


def test_others_and_other_names_do_not_count() -> None:
    """A user sees his own jobs of this name, digits aside."""
    recall = recalled([run(n, "FAILED", name="train7") for n in range(3)])
    assert own_sentences(recall, replace(ASK, name="TRAIN12"))["failure"]
    assert not own_sentences(recall, replace(ASK, user="bob"))
    assert not own_sentences(recall, replace(ASK, name="eval"))


@pytest.mark.parametrize(
    ("state", "script", "asked", "says"),
    [
        ("FAILED", "00000000000000aa", "00000000000000aa", "same"),
        ("FAILED", "00000000000000aa", "00000000000000ab", "changed"),
        ("FAILED", "", "00000000000000aa", "unknown"),
        ("FAILED", "00000000000000aa", "", "unknown"),
        ("COMPLETED", "00000000000000aa", "00000000000000aa", "unknown"),
        ("FAILED", "no hash at all", "00000000000000aa", "unknown"),
    ],
)
def test_a_script_is_compared_with_those_that_failed(state: str, script: str, asked: str, says: str) -> None:
    """Same, changed, or not known: what the rule on changed scripts rests on."""
    assert recalled([run(1, state)], script=script).script_says("ann", "train", asked) == says


def test_a_run_that_never_started_is_no_run() -> None:
    """Cancelled while it waited."""
    recall = Recall()
    recall.ended(run(1), T0, Outcome.NEVER_STARTED)
    assert not recall.runs("ann", "train")


def test_saved_runs_are_the_same(tmp_path: Path) -> None:
    """What is saved is read again; anything else is refused in one line."""
    recall = recalled([run(n, "FAILED") for n in range(5)], {3: 2}, script="00000000000000aa")
    recall.save(tmp_path / "recall.npy")
    assert Recall.load(tmp_path / "recall.npy").runs("ann", "train") == recall.runs("ann", "train")
    (tmp_path / "recall.npy").write_bytes((tmp_path / "recall.npy").read_bytes()[:-10])
    with pytest.raises(ParseError):
        Recall.load(tmp_path / "recall.npy")
    with pytest.raises(StoreError):
        Recall.load(tmp_path / "none.npy")


def test_the_number_of_names_is_bounded() -> None:
    """Those whose last run ended longest ago go first."""
    recall = Recall(max_names=40)
    for number in range(100):
        recall.ended(run(number, user=f"u{number}"), T0 + number, Outcome.COMPLETED)
    assert len(recall) <= 40
    assert recall.runs("u99", "train")
    assert not recall.runs("u0", "train")
