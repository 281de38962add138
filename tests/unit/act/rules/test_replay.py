"""Replay: stretches of idle time found in the rows of agents, and how hits are judged."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.act.rules.rule_file import load_rule, rule_from_toml
from gpuwaste.act.rules.rule_replay import replayed
from gpuwaste.act.rules.rule_types import ReplayRow
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import ConfigError
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.hub_rows import HOUR, hour, record

IDLE = load_rule(Path(__file__).parents[4] / "etc" / "rules.d" / "idle-gpus.toml")
END = HOUR + 4 * 3600


@pytest.fixture
def store() -> Iterator[HubStore]:
    """Open a store in memory."""
    found = HubStore.open(":memory:", SystemClock())
    yield found
    found.close()


def row(
    job: int, number: int, busy: tuple[int, int] | None, *, gpu: str = "", unknown: int = 0, node: str = "gpu1"
) -> Any:
    """Return an hour of a GPU that was at work between two seconds of it, else idle."""
    begin = HOUR + number * 3600
    work_ms = 0 if busy is None else 1000 * (busy[1] - busy[0])
    idle_ms = 3_600_000 - work_ms - 1000 * unknown
    util = {0: idle_ms} | ({90: work_ms} if work_ms else {})
    more: dict[str, Any] = {
        "hour_utc": begin, "t0_ms": begin * 1000, "t1_ms": (begin + 3600) * 1000, "util_ms": util, "seq": 9,
        "idle_run_ms": idle_ms, "unknown_ms": {"gap": 1000 * unknown} if unknown else {}, "proc_seen": True,
        "last_active_ms": None if busy is None else (begin + busy[1]) * 1000, "gpu_uuid": gpu or f"GPU-{job}",
    }  # fmt: skip
    return hour(job, node=node, **more)


def ended(job: int, user: str, **more: Any) -> Any:
    return record(job, user, end=END, elapsed_s=END - HOUR, **more)


def table(store: HubStore, rule: Any = IDLE) -> dict[int, ReplayRow]:
    with store.reader() as db:
        found = replayed(db, rule, "gw", HOUR - 60, END + 60, LedgerSettings())
    return {one.after_s: one for one in found.rows}


def test_a_stretch_is_judged_by_the_rest_of_the_run(store: HubStore) -> None:
    """Job 1 is idle from minute 10 to its end: right; job 2 wakes after two hours: wrong up to then; job 3 works."""
    upsert_jobs(store, [ended(1, "alice"), ended(2, "bob"), ended(3, "carol")])
    rows = [row(1, 0, (0, 600)), *(row(1, n, None) for n in (1, 2, 3))]
    rows += [row(2, 0, (0, 600)), row(2, 1, None), row(2, 2, (600, 3600)), row(2, 3, (0, 3600))]
    rows += [row(3, n, (0, 3600)) for n in range(4)]
    upsert_hours(store, rows)
    found = table(store)
    assert (found[1800].jobs, found[1800].wrong, found[1800].precision, found[1800].recall) == (2, 1, 0.5, 1.0)
    assert (found[7200].jobs, found[7200].wrong) == (2, 1), "2 h: the two hours from minute 10 on"
    assert (found[10800].jobs, found[10800].wrong, found[10800].precision) == (1, 0, 1.0)
    assert found[10800].freed_gpu_h == pytest.approx((4 * 3600 - 600 - 10800) / 3600)
    assert found[14400].jobs == 0


def test_all_gpus_of_a_run_must_be_idle(store: HubStore) -> None:
    """Of two GPUs one is idle all the time, the other for the last hour: the run is idle for that hour."""
    upsert_jobs(store, [ended(1, "alice", gpus=2)])
    rows = [row(1, n, None, gpu="GPU-a") for n in range(4)]
    rows += [row(1, n, (0, 3600) if n < 3 else None, gpu="GPU-b") for n in range(4)]
    upsert_hours(store, rows)
    found = table(store)
    assert (found[3600].jobs, found[5400].jobs) == (1, 0)


def test_what_is_not_known_is_not_idle(store: HubStore) -> None:
    """An hour with a gap ends the stretch: two of one hour, none of three."""
    upsert_jobs(store, [ended(1, "alice")])
    upsert_hours(store, [row(1, 0, None), row(1, 1, None, unknown=900), row(1, 2, None), row(1, 3, (0, 3600))])
    found = table(store)
    assert (found[3600].jobs, found[5400].jobs) == (1, 0)


def test_exemptions_hold_in_a_replay(store: HubStore) -> None:
    """A user of the list is not hit."""
    upsert_jobs(store, [ended(1, "alice"), ended(2, "bob")])
    upsert_hours(store, [row(job, n, None) for job in (1, 2) for n in range(4)])
    text = Path(IDLE.file).read_text(encoding="utf-8") + '\n[exempt]\nusers = ["ali*"]\n'
    assert table(store)[3600].jobs == 2
    assert table(store, rule_from_toml(text.encode(), "r.toml", "r"))[3600].jobs == 1


def test_the_facts_are_those_of_the_moment(store: HubStore) -> None:
    """A user's record counts what had ended by then: the run that fails later is not in it."""
    failed = record(9, "alice", start=HOUR, end=HOUR + 7000, elapsed_s=7000, state="FAILED")
    upsert_jobs(store, [ended(1, "alice"), failed])
    upsert_hours(store, [row(1, n, None) for n in range(4)])
    text = 'where = "user.failed_1d == 0"\nsince = "ledger.idle_s"\n[[do]]\naction = "cancel"\n'
    found = table(store, rule_from_toml(text.encode(), "r.toml", "r"))
    assert (found[5400].jobs, found[7200].jobs) == (1, 0)


def test_a_replay_of_a_rule_about_nodes_is_refused(store: HubStore) -> None:
    """In one line that says what is needed."""
    rule = load_rule(Path(IDLE.file).parent / "failing-node.toml")
    with pytest.raises(ConfigError, match=r"a replay needs ledger\.idle_s"):
        table(store, rule)
