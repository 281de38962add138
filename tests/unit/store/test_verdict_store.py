"""The audit in the hub's store: each verdict once, joined with its runs, scored by what they came to."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.advisor.verdicts import verdict

from gpuwaste.advice.verdicts import verdict_store
from gpuwaste.advice.verdicts.verdict_store import Pick, VerdictStore, verdict_json
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import history_events, runs_of_id, upsert_jobs
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.clocks import FakeClock

NOW = 1_700_100_000
HOUR = NOW // 3600 * 3600


def open_store(now: int = NOW + 10 * 86400) -> tuple[HubStore, VerdictStore]:
    clock = FakeClock(now)
    store = HubStore.open(":memory:", clock)
    return store, VerdictStore(store, clock)


def said(number: int, **more: Any) -> Verdict:
    return verdict(number, at_utc_us=NOW * 1_000_000 + number, **more)


def run(job: int, verdict_id: str, state: str = "FAILED", **more: Any) -> JobRecord:
    values: dict[str, Any] = {
        "cluster": "gw", "job_id": job, "submit": NOW, "printed_id": str(job), "user": "alice", "name": "train",
        "start": NOW + 5, "end": NOW + 605, "elapsed_s": 600, "state": state, "verdict_id": verdict_id,
    }  # fmt: skip
    return JobRecord(**{**values, **more})


def judged(verdicts: VerdictStore, **pick: Any) -> dict[int, dict[str, Any]]:
    return {int(row["id"]): row for row in verdicts.judged(Pick(**pick))}


def stands(verdicts: VerdictStore) -> dict[int, tuple[str, bool | None]]:
    return {number: (row["stands"], row["hit"]) for number, row in judged(verdicts).items()}


def test_a_verdict_counts_once() -> None:
    """The same id again, in a batch or later, changes nothing; the first one's content stays."""
    store, verdicts = open_store()
    assert verdicts.add([said(1), said(2), said(1)], "ctl") == ["warn", "warn"]
    assert verdicts.add([said(1, user="mallory"), said(3, action="reject")], "ctl") == ["reject"]
    assert {number: row["user"] for number, row in judged(verdicts).items()} == dict.fromkeys((1, 2, 3), "alice")
    assert store.counts()["verdicts"] == 3


@settings(max_examples=examples(30), deadline=None)
@given(batches=st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6))
def test_any_batches_give_each_verdict_once(batches: list[list[int]]) -> None:
    """Batches that overlap in any way leave every id once, and tell of each as news once."""
    store, verdicts = open_store()
    news = sum(len(verdicts.add([said(n) for n in batch], "ctl")) for batch in batches)
    assert news == store.counts()["verdicts"] == len({n for batch in batches for n in batch})
    store.close()


def test_every_field_comes_back() -> None:
    """Texts of any kind among them: quotes, newlines, NUL, half a surrogate pair."""
    _, verdicts = open_store()
    whole = said(
        1, op="modify", sampled=True, override="it's \"due\"\n", name="nul\0 half\ud800", het_offset=2, run_job_id=7,
        gpus=4, time_limit_s=60, script="ab", lines=("a", "b|c"), triggers={},
        shadow={"ab": {"failure": 0.25}},
    )  # fmt: skip
    verdicts.add([whole], "ctl")
    (row,) = verdicts.judged(Pick())
    expected = replace(whole, name="nul\\x00 half\\ud800").to_json()
    kept = {name: row[name] for name in expected if name not in {"quantiles", "shadow", "lines", "reasons"}}
    assert kept == {name: expected[name] for name in kept}
    assert verdict_json(row)["shadow"] == {"ab": {"failure": 0.25}}
    assert (row["lines"], row["node"]) == (["a", "b|c"], "ctl")


def test_a_verdict_meets_its_runs() -> None:
    """One job; an array's tasks; a het component of its own; a requeue's runs; a modification by the job's number."""
    store, verdicts = open_store()
    verdicts.add([said(n) for n in (1, 2, 3, 4)], "ctl")
    verdicts.add([said(5, op="modify", run_job_id=50), said(6, op="modify", run_job_id=60)], "ctl")
    ids = {n: said(n).id for n in range(1, 7)}
    upsert_jobs(
        store,
        [
            run(10, ids[1]),
            *(run(20 + t, ids[2], printed_id=f"20_{t}", array_job_id=20, array_task_id=t) for t in range(3)),
            run(31, ids[3], printed_id="30+1", het_job_id=30, het_offset=1),
            run(40, ids[4], "REQUEUED"),
            run(40, ids[4], "COMPLETED", start=NOW + 700, end=NOW + 900, submit=NOW + 610),
            run(50, "", "COMPLETED"),
            run(50, "", "FAILED", start=NOW - 900, end=NOW - 800, submit=NOW - 1000),
            run(62, "", printed_id="60_2", array_job_id=60, array_task_id=2),
        ],
    )
    found = judged(verdicts)
    assert {n: (sorted(row["job_ids"]), row["hit"]) for n, row in found.items()} == {
        1: (["10"], True),
        2: (["20_0", "20_1", "20_2"], True),
        3: (["30+1"], True),
        4: (["40"], False),
        5: (["50"], False),
        6: (["60_2"], True),
    }
    assert found[4]["runs"] == 2
    assert {row["stands"] for row in found.values()} == {"ended"}


def test_an_array_is_a_hit_where_half_of_its_tasks_are() -> None:
    """One failed task of three is not what "this job is likely to fail" means."""
    store, verdicts = open_store()
    verdicts.add([said(1), said(2)], "ctl")
    for number, states in ((1, ("FAILED", "COMPLETED", "COMPLETED")), (2, ("FAILED", "FAILED", "COMPLETED"))):
        upsert_jobs(store, [run(number * 10 + t, said(number).id, state) for t, state in enumerate(states)])
    assert {n: row["hit"] for n, row in judged(verdicts).items()} == {1: False, 2: True}


def test_how_a_verdict_stands() -> None:
    """Rejected; ended; open while its job runs, or may be one that accounting has not told; else without a job."""
    store, verdicts = open_store()
    verdicts.add([said(n, user=f"u{n}") for n in (1, 2, 3, 4)] + [said(5, action="reject")], "ctl")
    upsert_jobs(
        store,
        [
            run(1, said(1).id, "TIMEOUT"),
            run(2, said(2).id, "RUNNING", end=None, elapsed_s=None),
            run(3, "", "PENDING", user="u3", submit=NOW + 1, start=None, end=None, elapsed_s=None),
            run(9, "", "PENDING", user="u4", submit=NOW + 500, start=None, end=None, elapsed_s=None),
        ],
    )
    assert stands(verdicts) == {
        1: ("ended", None),
        2: ("open", None),
        3: ("open", None),
        4: ("no job", None),
        5: ("rejected", None),
    }
    _, young = open_store(NOW + 60)
    young.add([said(1)], "ctl")
    assert stands(young) == {1: ("open", None)}


def hours(job: int, busy: int, gpus: int = 4, known: float = 1.0) -> list[AllocationHour]:
    """Return ten minutes of `gpus` GPUs of which `busy` worked."""
    start, known_ms = NOW + 5, int(600_000 * known)
    return [
        AllocationHour(
            RunKey("gw", job, start), "gpu1", f"GPU-{n}", start // 3600 * 3600, 1, start * 1000, (start + 600) * 1000,
            final=True, util_ms={80 if n < busy else 0: known_ms}, unknown_ms={"gap": 600_000 - known_ms},
        )
        for n in range(gpus)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("busy", "known", "state", "hit"),
    [
        (1, 1.0, "COMPLETED", True),
        (4, 1.0, "COMPLETED", False),
        (0, 1.0, "COMPLETED", True),
        (1, 1.0, "FAILED", True),
        (1, 0.7, "COMPLETED", None),
    ],
)
def test_gpu_advice_is_judged_by_the_ledger(busy: int, known: float, state: str, hit: bool | None) -> None:
    """Fewer active GPUs than held, or under-use, once four fifths of the allocation are known."""
    assert HOUR + 3600 > NOW + 605
    store, verdicts = open_store()
    verdicts.add([said(1, triggers={"gpus": 0.9}, p={"gpu_underused": 0.9})], "ctl")
    upsert_jobs(store, [run(10, said(1).id, state, gpus=4)])
    assert stands(verdicts) == {1: ("ended", None)}
    upsert_hours(store, hours(10, busy, known=known))
    assert stands(verdicts) == {1: ("ended", hit)}


def test_history_tells_the_script_of_the_verdict() -> None:
    """Of each event of a run whose token is known; a run without one has none."""
    store, verdicts = open_store()
    verdicts.add([said(1, script="00ff"), said(2)], "ctl")
    upsert_jobs(store, [run(10, said(1).id), run(11, said(2).id), run(12, "")])
    assert {(e.run_key.job_id, e.script) for e in history_events(store, 0, 99)} == {(10, "00ff"), (11, ""), (12, "")}


def test_the_scripts_of_failed_runs() -> None:
    """Those whose verdict knows the script; runs that did not fail, and other clusters', are not among them."""
    store, verdicts = open_store()
    verdicts.add([said(1, script="00ff"), said(2), said(3, script="0a"), said(4, script="0b")], "ctl")
    upsert_jobs(
        store,
        [
            run(6, said(1).id, "FAILED"),
            run(7, said(2).id, "FAILED"),
            run(8, said(3).id, "COMPLETED"),
            run(9, said(4).id, "FAILED", cluster="other"),
        ],
    )
    assert list(verdicts.failed_scripts("gw")) == [("alice", "train", 6, "00ff")]


def test_a_token_that_was_told_stays() -> None:
    """A source that does not tell it, or an older Slurm while the job runs, does not make the store forget it."""
    store, verdicts = open_store()
    verdicts.add([said(1)], "ctl")
    upsert_jobs(store, [run(10, said(1).id)])
    assert upsert_jobs(store, [run(10, "")]) == 0
    assert upsert_jobs(store, [run(10, said(2).id)]) == 1
    assert runs_of_id(store, "gw", 10)[0].verdict_id == said(2).id


def test_a_token_that_is_told_at_the_end_tells_nothing_twice() -> None:
    """Slurm 22.05 tells it in accounting when the job has ended: one event more, the end, and the row is joined."""
    store, verdicts = open_store()
    verdicts.add([said(1)], "ctl")
    upsert_jobs(store, [run(10, "", "RUNNING", end=None, elapsed_s=None)])
    upsert_jobs(store, [run(10, said(1).id)])
    assert [event.kind for event in history_events(store, 0, 9)] == ["started", "ended"]
    assert stands(verdicts) == {1: ("ended", True)}
    assert verdicts.counts() == {("warn", True): 1}


def test_verdicts_are_on_disk_when_they_were_taken(tmp_path: Path) -> None:
    """Another opening of the file after a close has them."""
    path = tmp_path / "hub.duckdb"
    for expected in (["warn"], []):
        store = HubStore.open(path, SystemClock())
        assert VerdictStore(store, SystemClock()).add([said(1)], "ctl") == expected
        store.close()


def planned(number: int, job: int, user: str = "alice", start: int | None = NOW + 60) -> Verdict:
    levels = {} if start is None else {"start": {"0.1": start, "0.5": start + 300, "0.9": start + 600}}
    more = {"op": "plan", "policy": "gpuwaste plan", "action": "annotate", "would_be": "annotate", "held": ""}
    return said(number, user=user, run_job_id=job, quantiles=levels, p={}, triggers={}, **more)


def test_a_plan_is_scored_by_the_start_of_its_own_user_s_job() -> None:
    """In the interval, a minute beside it, later; not started; and a job of another user, which says nothing."""
    store, verdicts = open_store()
    starts = {1: NOW + 300, 2: NOW + 719, 3: NOW + 800, 4: None}
    ends = {job: None if start is None else start + 600 for job, start in starts.items()}
    upsert_jobs(store, [run(job, "", "COMPLETED", start=start, end=ends[job]) for job, start in starts.items()])
    upsert_jobs(store, [run(5, "", "COMPLETED", user="bob")])
    assert verdicts.add_plans("alice", [planned(job, job) for job in (1, 2, 3, 4, 5)]) == [1, 2, 3, 4, 5]
    found = judged(verdicts)
    assert {n: (row["started"], row["start_within"]) for n, row in found.items()} == {
        1: (starts[1], True),
        2: (starts[2], True),
        3: (starts[3], False),
        4: (None, None),
        5: (None, None),
    }
    assert found[5]["job_ids"] == []
    weeks = verdicts.score(0)[0]
    assert [(row["policy"], row["starts"], row["starts_within"]) for row in weeks] == [("gpuwaste plan", 3, 2)]


def test_a_job_has_one_plan_and_a_user_so_many_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second plan of a job is left out, one of another user is not; after the day's bound nothing is taken."""
    store, verdicts = open_store(NOW)
    assert verdicts.add_plans("alice", [planned(1, 7)]) == [7]
    assert verdicts.add_plans("alice", [planned(2, 7), planned(3, 8)]) == [8]
    assert verdicts.add_plans("bob", [planned(4, 7, "bob")]) == [7]
    monkeypatch.setattr(verdict_store, "PLANS_A_DAY", 3)
    assert verdicts.add_plans("alice", [planned(5, 9), planned(6, 10)]) == [9]
    assert store.counts()["verdicts"] == 4


def test_what_two_bundles_said_meets_what_came_true() -> None:
    """Submissions that both scored and that have an outcome; '' as the second bundle is every one of the first's."""
    store, verdicts = open_store()
    both = {"model_hash": "c1", "p": {"failure": 0.5, "timeout": 0.1}, "triggers": {}}
    shadow = {"aa": {"failure": 0.75}, "bb": {"failure": 0.5, "timeout": 0.5}}
    verdicts.add(
        [
            said(1, shadow=shadow, **both),
            said(2, shadow=shadow, **both),
            said(3, shadow={"bb": {"failure": 0.5}}, **both),
            said(4, shadow=shadow, **{**both, "model_hash": "c2"}),
            said(5, shadow=shadow, **both),
            said(6, shadow=shadow, op="modify", run_job_id=60, **both),
        ],
        "ctl",
    )
    states = {1: "FAILED", 2: "COMPLETED", 3: "FAILED", 4: "FAILED", 5: "RUNNING"}
    open_run = {"end": None, "elapsed_s": None}
    ends = {n: {"time_limit_s": 3600, **(open_run if s == "RUNNING" else {})} for n, s in states.items()}
    upsert_jobs(store, [run(n * 10, said(n).id, s, **ends[n]) for n, s in states.items()])

    def pairs(beside: str, since: int = 0) -> list[tuple[str, float, float | None, bool]]:
        rows = verdicts.pairs("c1", beside, since)
        return [(row["target"], row["p"], row["beside"], row["came"]) for row in rows]

    assert pairs("aa") == [("failure", 0.5, 0.75, True), ("failure", 0.5, 0.75, False)]
    assert [row[0] for row in pairs("bb")] == ["failure"] * 3 + ["timeout"] * 2
    assert pairs("cc") == pairs("aa", NOW + 1) == []
    assert [row[2:] for row in pairs("")][:3] == [(None, True), (None, False), (None, True)]


@pytest.mark.parametrize(
    ("state", "limit_s", "stands"),
    [
        ("FAILED", 600, True),
        ("CANCELLED", 600, True),
        ("FAILED", 601, False),
        ("COMPLETED", 600, False),
        ("TIMEOUT", 600, True),
        ("FAILED", None, None),
    ],
)
def test_a_run_that_ended_at_its_limit_is_a_timeout(state: str, limit_s: int | None, stands: bool | None) -> None:
    """A FAILED run of 600 s with a limit of 600 s is a hit of a timeout that was announced, as it is for training."""
    store, verdicts = open_store()
    verdicts.add([said(1, triggers={"timeout": 0.9}, p={"timeout": 0.9})], "ctl")
    upsert_jobs(store, [run(10, said(1).id, state, time_limit_s=limit_s)])
    assert judged(verdicts)[1]["hit"] is stands


def test_a_shadow_of_odd_names_harms_no_query() -> None:
    """An advisor may write any text: quotes and patterns in a hash or a target are nobody's path."""
    store, verdicts = open_store()
    odd = {'a"b': {'fail"ure': 0.5, "$.x": 0.1}, "aa": {"failure": 0.5}}
    values = {"model_hash": "c1", "p": {"failure": 0.5, 'fail"ure': 0.2}}
    broken = {**odd, "half\ud800": {"failure": 0.5}}
    verdicts.add([said(1, shadow=odd, **values), said(2, shadow=broken, **values)], "ctl")
    upsert_jobs(store, [run(10, said(1).id), run(20, said(2).id)])
    assert len(verdicts.pairs("c1", "aa", 0)) == 1
    assert verdicts.pairs("c1", 'a"b', 0) == []
