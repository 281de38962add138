"""What is known of a wait as numbers: one name for each, and the same from a live queue as from a history."""

import math

import numpy as np
from tests.unit.plan.test_live_queue import NOW, job

from gpuwaste.plan.learnt_waits import MAX_TASKS, LiveRows
from gpuwaste.plan.wait_bundle import PoolSize, WaitMachine
from gpuwaste.plan.wait_features import NAMES, simulated, vector
from gpuwaste.plan.wait_knowledge import JobRows, Knowledge, QueueInstant, learnt_of
from gpuwaste.slurm.submit.job_request import JobRequest

MACHINE = WaitMachine([PoolSize("other", 4, 0), PoolSize("gpu", 8, 8)], 5)


def named(at: QueueInstant, known: Knowledge) -> dict[str, float]:
    """Return the features of the first row that is asked about, by name."""
    hints = simulated(at, known.past, 5, 1)
    found = vector(at, 0, known, hints[0])
    assert len(found) == len(NAMES) == len(set(NAMES))
    return dict(zip(NAMES, found, strict=True))


def test_a_live_queue_as_features() -> None:
    """Free processors and GPUs, what is queued, and what the user holds are shares of the partition."""
    rows = LiveRows(MACHINE)
    asked = rows.asked([JobRequest(user="bob", submit=NOW, partition="gpu", cpus=2, gpus=4, time_limit_s=3600)])
    jobs = [job(1, "RUNNING"), job(2), job(3, printed_id="3_[1-3]"), job(4, partition="other"), job(5, partition="x")]
    running, waiting = rows.queue(jobs, NOW)
    at = rows.instant(NOW, 1, running, waiting, asked)
    assert (len(at.running.submit), len(at.waiting.submit)) == (1, 4)
    found = named(at, Knowledge())
    assert found["free"] == 7 / 8
    assert found["free_after"] == 5 / 8
    assert found["gpus_free"] == 6 / 8
    assert found["waiting"] == found["queued_user_count"] == 4
    assert found["user_running"] == 1
    assert math.isnan(found["waits_user_last"])


def test_what_a_partition_that_is_not_known_gets() -> None:
    """A partition that the bundle has not learnt has no number; of several the first known one counts."""
    rows = LiveRows(MACHINE)
    assert [rows.pool_of(name) for name in ("new", "new,gpu", "other,gpu", "")] == [None, 1, 0, None]


def test_an_array_of_any_size_is_bounded() -> None:
    """A waiting array of a million tasks enters as so many rows as one may have."""
    _, waiting = LiveRows(MACHINE).queue([job(3, printed_id="3_[1-1000000]")], NOW)
    assert len(waiting.submit) == MAX_TASKS


def test_history_in_any_order_teaches_the_same() -> None:
    """Starts and ends are taken in the order of time; a job that still runs teaches its wait and no run time."""

    def column(*values: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.array(values, np.int64)

    one = column(1, 1, 1)
    jobs = JobRows(column(0, 10, 20), column(100, 50, 70), one, one, one * 100, one, one, one, one)
    ended = column(200, 90, -1)
    known = learnt_of(jobs, ended)
    last = known.waits.last(jobs, 0)["shape"]
    assert [(start.at, start.wait_s) for start in last] == [(50, 40), (70, 50), (100, 100)]
    assert known.usage.at(("user", 1), 200) > known.usage.at(("user", 1), 200 + 7 * 86400) > 0
    back = learnt_of(jobs.at(slice(None, None, -1)), ended[::-1].copy())
    assert back.waits.last(jobs, 0) == known.waits.last(jobs, 0)
    assert known.past.quantiles(1, (1, 1, 100), 100)[3] == back.past.quantiles(1, (1, 1, 100), 100)[3] == 70.0
