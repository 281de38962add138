"""Ladders in a replay: what each step frees and costs, beside a plain second definition; and the order of regret."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import to_builtins
from tests.unit.act.rules.test_replay import END, row

from gpuwaste.act.rules.rule_file import rule_from_toml
from gpuwaste.act.rules.rule_replay import replayed
from gpuwaste.act.rules.rule_rungs import order_notes, plans_of
from gpuwaste.act.rules.rule_text import replay_text
from gpuwaste.act.rules.rule_types import ReplayDocument, ReplayLadder
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.show.layout import Look
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.hub_rows import HOUR, record

HEAD = 'where = "ledger.idle_s >= 300.0"\nsince = "ledger.idle_s"\n[exempt]\nwaste = false\n'
HOURS = 4


@pytest.fixture
def store() -> Iterator[HubStore]:
    """Open a store in memory."""
    found = HubStore.open(":memory:", SystemClock())
    yield found
    found.close()


def rule(*steps: tuple[str, str], head: str = HEAD) -> Any:
    more = {"notify": '\nsubject = "s"\ntext = "t"', "shrink": '\nnodes = "{ledger.idle_nodes}"'}
    more["lower_request"] = '\ngpus = "1"'
    text = "".join(f'[[do]]\nafter = "{after}"\naction = "{action}"{more.get(action, "")}\n' for after, action in steps)
    return rule_from_toml((head + text).encode(), "r.toml", "r")


@dataclass(frozen=True)
class DrawnRun:
    """A run of four hours: the hours in which its first node works, and those in which its second one does."""

    job: int
    first: frozenset[int]
    second: frozenset[int] | None  # None: it has one node
    interactive: bool
    gpus: int  # of each node

    def idle(self, hour: int) -> bool:
        return hour not in self.first and (self.second is None or hour not in self.second)

    def rows(self) -> list[Any]:
        found = []
        for node, busy in (("gpu1", self.first), ("gpu2", self.second)):
            for number in range(self.gpus if busy is not None else 0):
                for hour in range(HOURS):
                    work = (0, 3600) if hour in (busy or ()) else None
                    found.append(row(self.job, hour, work, gpu=f"GPU-{self.job}-{node}-{number}", node=node))
        return found

    def record(self) -> Any:
        nodes = 1 if self.second is None else 2
        return record(
            self.job, f"u{self.job % 3}", end=END, elapsed_s=END - HOUR, gpus=self.gpus * nodes, n_nodes=nodes,
            nodes="gpu1" if nodes == 1 else "gpu[1-2]", interactive=self.interactive,
        )  # fmt: skip


def filled(store: HubStore, runs: list[DrawnRun]) -> None:
    upsert_jobs(store, [run.record() for run in runs])
    upsert_hours(store, [one for run in runs for one in run.rows()])


def replay(store: HubStore, given: Any) -> ReplayDocument:
    with store.reader() as db:
        return replayed(db, given, "gw", HOUR - 60, END + 60, LedgerSettings())


def stretches(run: DrawnRun) -> list[tuple[int, int]]:
    """Return the idle stretches of a run: begin and end, seconds since its start."""
    found: list[tuple[int, int]] = []
    for hour in range(HOURS):
        if not run.idle(hour):
            continue
        begin = found.pop()[0] if found and found[-1][1] == hour * 3600 else hour * 3600
        found.append((begin, (hour + 1) * 3600))
    return found


def plainly(runs: list[DrawnRun], rungs: list[tuple[int, str]]) -> dict[str, float]:
    """Return what a ladder does, by walking through each run; GPU-seconds."""
    total = {"jobs": 0.0, "wrong": 0.0, "freed": 0.0, "cost": 0.0, "low": 0.0, "resubmitted": 0.0}
    for run in runs:
        saved = 0
        held = run.gpus * (1 if run.second is None else 2)
        last = max([*run.first, *(run.second or ()), -1])
        for after, action in rungs:
            hit = next((begin for begin, end in stretches(run) if end - begin >= after), None)
            if hit is None:
                continue
            at = hit + after
            if action == "checkpoint":
                saved = at
            if action == "requeue" and run.interactive:
                continue
            if action == "shrink" and run.second is None:
                continue
            if action not in {"shrink", "requeue", "cancel"}:
                continue
            woke = (max(run.second or {-1}) if action == "shrink" else last) * 3600 >= hit
            total["jobs"] += 1
            if woke:
                total["wrong"] += 1
                total["cost"] += held * at
                total["low"] += 0 if action == "shrink" else held * (at - saved)
                total["resubmitted"] += action == "cancel"
            else:
                total["freed"] += (run.gpus if action == "shrink" else held) * (HOURS * 3600 - at)
            break
    return total


def same(found: ReplayLadder, wanted: dict[str, float]) -> None:
    assert (found.jobs, found.wrong, found.resubmitted) == (wanted["jobs"], wanted["wrong"], wanted["resubmitted"])
    assert found.freed_gpu_h * 3600 == pytest.approx(wanted["freed"])
    assert found.cost_gpu_h * 3600 == pytest.approx(wanted["cost"])
    assert found.cost_low_gpu_h * 3600 == pytest.approx(wanted["low"])
    per = None if not wanted["wrong"] else wanted["freed"] / 3600 / wanted["wrong"]
    assert found.freed_per_wrong_gpu_h == (None if per is None else pytest.approx(per))


@pytest.mark.parametrize("seed", range(6))
def test_drawn_runs_beside_the_plain_definition(store: HubStore, seed: int) -> None:
    """Every ladder, the rule's own and the usual ones, on runs that work, idle and wake at random."""
    draw = random.Random(seed)
    runs = []
    for job in range(1, 40):
        busy = [frozenset(hour for hour in range(HOURS) if draw.random() < 0.45) for _ in range(2)]
        second = busy[1] if draw.random() < 0.5 else None
        runs.append(DrawnRun(job, busy[0], second, draw.random() < 0.3, draw.choice([1, 2])))
    filled(store, runs)
    given = rule(("10m", "notify"), ("30m", "checkpoint"), ("60m", "shrink"), ("90m", "requeue"), ("2h", "cancel"))
    document = replay(store, given)
    plans = plans_of(given)
    assert to_builtins(document)["ladders"][0]["name"] == "this rule"
    assert [one.name for one in document.ladders] == [plan.name for plan in plans]
    for found, plan in zip(document.ladders, plans, strict=True):
        same(found, plainly(runs, [(rung.after_s, rung.action) for rung in plan.rungs]))
    assert any(one.wrong for one in document.ladders)


def test_one_run_by_hand(store: HubStore) -> None:
    """Two GPUs that are idle from hour 1 on and wake in the last one: cancelled after an hour, 4 GPU-hours are lost."""
    filled(store, [DrawnRun(1, frozenset({0, 3}), None, interactive=False, gpus=2)])
    document = replay(store, rule(("30m", "checkpoint"), ("60m", "cancel")))
    own = document.ladders[0]
    assert (own.jobs, own.wrong, own.freed_gpu_h, own.resubmitted) == (1, 1, 0.0, 1)
    assert (own.cost_gpu_h, own.cost_low_gpu_h, own.freed_per_wrong_gpu_h) == (4.0, 1.0, 0.0)
    signal, cancel = own.rungs
    assert (signal.freed_gpu_h, signal.cost_gpu_h, signal.cost_low_gpu_h) == (0.0, None, 0.0)
    assert (cancel.after_s, cancel.wrong) == (3600, 1)


def test_what_the_history_does_not_tell_is_not_known(store: HubStore) -> None:
    """A signal and a lower request have no figures; the text prints a mark for these and not 0."""
    filled(store, [DrawnRun(1, frozenset({0}), None, interactive=False, gpus=1)])
    document = replay(store, rule(("10m", "lower_request"), ("30m", "signal"), ("60m", "cancel")))
    for rung in document.ladders[0].rungs[:2]:
        assert (rung.freed_gpu_h, rung.cost_gpu_h, rung.cost_low_gpu_h) == (None, None, None)
    text = replay_text(document, Look())
    assert "By ladder" in text
    assert "checkpoint, shrink, requeue, cancel" in text
    assert "By step of this rule" in text


def test_an_unreadable_list_of_nodes_is_not_shrunk(store: HubStore) -> None:
    """Without a first node nothing is known of a shrink: the ladder goes on to its next step."""
    one = DrawnRun(1, frozenset({0}), frozenset({0}), interactive=False, gpus=1)
    upsert_jobs(store, [record(1, "u1", end=END, elapsed_s=END - HOUR, gpus=2, n_nodes=2, nodes="g[1-2]x[1-2]")])
    upsert_hours(store, one.rows())
    own = replay(store, rule(("30m", "shrink"), ("60m", "cancel"))).ladders[0]
    assert [rung.jobs for rung in own.rungs] == [0, 1]


def test_a_harder_step_before_a_softer_one_is_noted() -> None:
    """And a cancel without a softer step, and a step about a job in another state."""
    assert order_notes(rule(("1h", "checkpoint"), ("2h", "requeue"), ("3h", "cancel"))) == []
    late = order_notes(rule(("1h", "requeue"), ("2h", "checkpoint"), ("3h", "cancel")))
    assert late == ["step 2, checkpoint, is softer than requeue before it: put it first"]
    alone = order_notes(rule(("1h", "notify"), ("2h", "cancel")))
    assert alone == ["cancel is its only hard step; softer ones are checkpoint, shrink, requeue"]
    assert "needs a waiting job" in order_notes(rule(("1h", "lower_request")))[0]
    waits = 'about = "waiting"\nwhere = "job.cpus > 0"\n'
    assert order_notes(rule(("1h", "lower_request"), head=waits)) == []
    assert "needs a running job" in order_notes(rule(("1h", "checkpoint"), head=waits))[0]
