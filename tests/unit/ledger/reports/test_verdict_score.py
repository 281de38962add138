"""The score of verdicts, on a planted set whose precision, recall and calibration are known by hand."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import to_builtins
from tests.unit.advisor.verdicts import verdict

from gpuwaste.advice.verdicts.verdict_score import score_document
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock

MONDAY = int(datetime(2025, 12, 29, 12, tzinfo=UTC).timestamp())  # ISO week 1 of 2026
WEEK = 7 * 86400


class Plant:
    """A store with verdicts and the ends of their jobs."""

    def __init__(self) -> None:
        clock = FakeClock(MONDAY + 5 * WEEK)
        self.store = HubStore.open(":memory:", clock)
        self.verdicts = VerdictStore(self.store, clock)
        self.count = 0

    def put(self, end: str | None, p: float, *, week: int = 0, times: int = 1, **more: Any) -> None:
        """Plant verdicts with a probability of failure; `end` is the state of the job, None for no job."""
        rows, jobs = [], []
        for _ in range(times):
            self.count += 1
            at = MONDAY + week * WEEK + self.count
            would = more.get("would_be", "warn" if p >= 0.5 else "pass")
            values = {"action": would, "mode": "warn", **more, "would_be": would}
            triggers = {"failure": p} if would != "pass" else {}
            row = verdict(self.count, at_utc_us=at * 10**6, p={"failure": p}, triggers=triggers, **values)
            rows.append(row)
            if end is not None:
                jobs.append(
                    JobRecord(
                        "gw", self.count, at, user="alice", start=at, end=at + 60, elapsed_s=60, state=end,
                        verdict_id=row.id,
                    )
                )  # fmt: skip
        self.verdicts.add(rows, "ctl")
        upsert_jobs(self.store, jobs)

    def score(self, since: int = 0) -> dict[str, Any]:
        weeks, bins, rule = self.verdicts.score(since)
        found: dict[str, Any] = to_builtins(score_document(weeks, bins, rule, since=since, now=MONDAY + 5 * WEEK))
        return found


@pytest.fixture
def plant() -> Plant:
    """Week 1: 10 warned (6 failed, 2 completed, 2 timed out), 20 passed (2 failed, 18 completed)."""
    plant = Plant()
    plant.put("FAILED", 0.85, times=6)
    plant.put("COMPLETED", 0.85, times=2)
    plant.put("TIMEOUT", 0.85, times=2)
    plant.put("FAILED", 0.05, times=2)
    plant.put("COMPLETED", 0.05, times=18)
    return plant


def test_precision_and_recall_of_a_planted_week(plant: Plant) -> None:
    """6 of the 8 warned that say something of failure failed: 0.75; of the 8 that failed 6 were warned: 0.75."""
    (week,) = plant.score()["weeks"]
    assert (week["policy"], week["week"], week["n"], week["warned"]) == ("site", "2026-W01", 30, 10)
    assert (week["judged"], week["hits"], week["precision"]) == (8, 6, 0.75)
    assert (week["went_wrong"], week["found"], week["recall"]) == (8, 6, 0.75)
    assert (week["open"], week["no_job"], week["overrides"], week["floored"]) == (0, 0, 0, 0)


def test_the_calibration_error_of_a_planted_week(plant: Plant) -> None:
    """8 in the bin of 0.85 came true at 0.75, 20 in the bin of 0.05 at 0.1: (8 * 0.1 + 20 * 0.05) / 28."""
    score = plant.score()
    (found,) = score["calibration"]
    assert (found["target"], found["n"]) == ("failure", 28)
    assert found["ece"] == pytest.approx((8 * 0.1 + 20 * 0.05) / 28, abs=1e-4)
    assert found["bins"] == [
        {"from": 0.0, "to": 0.1, "n": 20, "expected": 0.05, "true": 0.1},
        {"from": 0.8, "to": 0.9, "n": 8, "expected": 0.85, "true": 0.75},
    ]
    assert score["weeks"][0]["ece"] == {"failure": found["ece"]}


def test_weeks_and_policies_are_apart_and_the_standing_is_over_all(plant: Plant) -> None:
    """The score by ISO week across the turn of the year, a policy's own week, and its standing since a moment."""
    plant.put("COMPLETED", 0.9, week=1, times=4)
    plant.put("FAILED", 0.9, week=1, policy="strict")
    score = plant.score()
    rows = {(w["policy"], w["week"]): (w["hits"], w["judged"]) for w in score["weeks"]}
    assert rows == {("site", "2026-W01"): (6, 8), ("site", "2026-W02"): (0, 4), ("strict", "2026-W02"): (1, 1)}
    assert score["standing"] == {"site": {"precision": 0.5, "n": 12}, "strict": {"precision": 1.0, "n": 1}}
    assert plant.score(MONDAY + WEEK)["standing"]["site"] == {"precision": 0.0, "n": 4}


def test_shadow_is_scored_by_what_it_would_have_said() -> None:
    """Nothing was said, and precision and standing are known all the same: so a policy can leave its shadow."""
    plant = Plant()
    plant.put("FAILED", 0.9, times=3, mode="shadow", action="pass", would_be="warn", held="shadow")
    plant.put("COMPLETED", 0.9, mode="shadow", action="pass", would_be="reject", held="floor")
    score = plant.score()
    assert score["standing"] == {"site": {"precision": 0.75, "n": 4}}
    assert (score["weeks"][0]["warned"], score["weeks"][0]["floored"]) == (0, 1)


def test_rejects_overrides_and_random_passes() -> None:
    """What was rejected has no outcome; the would-be rejects that passed at random tell the false ones."""
    plant = Plant()
    plant.put(None, 0.9, times=5, action="reject", would_be="reject")
    plant.put("FAILED", 0.9, times=3, action="pass", would_be="reject", held="random", sampled=True)
    plant.put("COMPLETED", 0.9, action="pass", would_be="reject", held="random", sampled=True)
    plant.put("COMPLETED", 0.9, times=2, action="annotate", would_be="reject", held="override", override="why")
    plant.put("FAILED", 0.9, action="annotate", would_be="reject", held="override", override="why")
    plant.put(None, 0.9)
    (week,) = plant.score()["weeks"]
    assert (week["rejected"], week["sampled"], week["sampled_judged"], week["false_rejects"]) == (5, 4, 4, 1)
    assert week["reject_precision"] == 0.75
    assert (week["overrides"], week["overrides_judged"], week["overrides_hits"]) == (3, 3, 1)
    assert (week["no_job"], week["open"]) == (1, 0)


def test_nothing_said_is_an_empty_score() -> None:
    """No rows, no ratio, no error."""
    score = Plant().score()
    assert (score["weeks"], score["policies"], score["calibration"], score["standing"]) == ([], [], [], {})
    plant = Plant()
    plant.put(None, 0.9)
    assert plant.score()["standing"] == {"site": {"precision": None, "n": 0}}
