"""What is known of a queue at each submission, and that nothing later is."""

import numpy as np
import pytest
from tests.unit.models.waits.logs import drawn_log

from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.models.wait_replay import LAST, REQUEST, ROLLED, WaitLog, submissions, wait_log, wait_rows
from gpuwaste.plan.wait_knowledge import JobRows, Knowledge
from gpuwaste.slurm.accounting.job_record import JobRecord


def column(*values: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, np.int64)


def log_of(*jobs: tuple[int, int, int]) -> WaitLog:
    """Return jobs (submit, start, gone) of one processor on a machine of two."""
    submit, start, gone = (column(*values) for values in zip(*jobs, strict=True))
    ones = np.ones(len(jobs), np.int64)
    none = ones * 0
    rows = JobRows(submit, start, ones, none, ones * 100, ones, ones, none, none)
    return WaitLog(rows, gone, np.array([[2, 0]]), ("p",))


def test_queue_at_each_submission() -> None:
    """A start is known a second later, an end at the next second, a cancelled job waits until it is gone."""
    log = log_of((0, 0, 50), (0, 10, 60), (10, -1, 70), (11, 60, 65), (61, 70, 80), (71, 71, 72))
    seen = [(s.running.tolist(), s.waiting.tolist()) for s in submissions(log, Knowledge())]
    assert seen == [([], []), ([], [0]), ([0], [1]), ([0, 1], [2]), ([3], [2]), ([4], [])]


def test_past_runs_are_those_that_ended() -> None:
    """Run times are learnt at the ends, in their order, and never from a job that did not start."""
    log = log_of((0, 0, 50), (0, -1, 20), *[(100 + k, 100 + k, 130 + k) for k in range(5)], (140, 140, 141))
    known = Knowledge()
    learnt = [known.past.quantiles("nobody", 0, 100)[3] for _ in submissions(log, known)]
    assert learnt[:2] == [50.0, 50.0]
    assert learnt[2] == 50.0, "one run, of half its limit"
    assert learnt[-1] == pytest.approx(30.0), "five more, of 30 s"


def test_nothing_later_is_known() -> None:
    """Another future of the jobs that wait and run changes no row of a submission before it."""
    log, cut = drawn_log(120), 80
    jobs = log.jobs
    now = jobs.submit[cut]
    rng = np.random.default_rng(9)
    later = np.arange(120) > cut
    open_start, open_end = (jobs.start >= now) | later, (log.gone >= now) | later
    start = np.where(
        open_start & (jobs.start >= 0), np.maximum(jobs.submit, now) + rng.integers(0, 9000, 120), jobs.start
    )
    gone = np.where(open_end, np.maximum(np.maximum(start, jobs.submit), now) + rng.integers(0, 9000, 120), log.gone)
    assert (start != jobs.start).sum() > 20
    one, other = (wait_rows(each, draws=3) for each in (log, log._replace(jobs=jobs._replace(start=start), gone=gone)))
    known = int((jobs.start[: cut + 1] >= 0).sum())
    assert known > 60
    np.testing.assert_array_equal(one.features[:known], other.features[:known])
    np.testing.assert_array_equal(one.simulated[:known], other.simulated[:known])
    for name, said in one.baselines.items():
        np.testing.assert_array_equal(said[:known], other.baselines[name][:known])
    assert not np.array_equal(one.features[known + 10 :], other.features[known + 10 :])


def test_baselines() -> None:
    """The last wait of the shape, the quantiles of the size's last waits, and the wait if all took their limits."""
    log = log_of((0, 0, 30), (0, 0, 30), (1, 30, 40), (31, 40, 90), (50, 95, 99))
    rows = wait_rows(log, draws=4)
    assert rows.baselines[LAST][-1].tolist() == [9.0] * 3
    assert rows.baselines[REQUEST][-1].tolist() == [0.0] * 3, "one of two processors is free"
    rolling = rows.baselines[ROLLED[20]][-1]
    assert rolling.tolist() == pytest.approx(np.quantile([0, 0, 29, 9], (0.1, 0.5, 0.9)).tolist())
    assert rows.baselines[REQUEST][2].tolist() == [99.0] * 3
    assert rows.waited.tolist() == [0, 0, 29, 9, 45]


def test_log_of_a_table() -> None:
    """A partition is as large as what it held at once; jobs that never started stay, those of no processor do not."""
    jobs = [
        JobRecord(cluster="c", job_id=1, submit=100, start=110, end=150, elapsed_s=40, cpus=4, state="COMPLETED"),
        JobRecord(cluster="c", job_id=2, submit=100, start=120, end=130, elapsed_s=10, cpus=2, state="COMPLETED"),
        JobRecord(cluster="c", job_id=3, submit=100, start=None, end=190, state="CANCELLED", req_tres="cpu=1"),
        JobRecord(cluster="c", job_id=4, submit=101, start=110, end=120, elapsed_s=10, state="COMPLETED"),
    ]
    log = wait_log(table_of(jobs), None)
    assert log.jobs.procs.tolist()[:2] == [4, 2]
    assert log.capacity.tolist() == [[6, 0]]
    assert log.jobs.start.tolist()[:3] == [110, 120, -1]
    assert wait_log(table_of(jobs), 64).capacity.tolist() == [[64, 0]]
