"""Wrapping: what each way makes of a workflow, fair share by usage, and workflows among the jobs of others."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.errors import UsageError
from gpuwaste.sim.experiments import wrap_dynamic, wrap_static
from gpuwaste.sim.fair_share_queue import MARENOSTRUM
from gpuwaste.sim.generated_load import Load
from gpuwaste.sim.swf_writer import swf_lines
from gpuwaste.sim.workflow_wrapping import WRAPPERS, BackgroundLoad, Workflow, time_to_solution, workflow_starts

RUNS = np.array([[10, 40], [30, 5]], dtype=np.int64)


def others(n: int = 60, total: int = 8, users: int = 5) -> BackgroundLoad:
    """Return a crowded machine: jobs of equal length that come faster than it runs them."""
    place = np.arange(n, dtype=np.int64)
    owners = tuple((f"a{k}", f"u{k}") for k in range(users))
    return BackgroundLoad(
        place * 300,
        np.full(n, 1800),
        np.full(n, 2400),
        1 + place % total,
        place % users,
        owners,
        np.zeros(users),
        total,
    )


def lone(submit: int, run_s: int, procs: int) -> BackgroundLoad:
    """Return one job of one user on eight processors."""
    column = [np.array([each], dtype=np.int64) for each in (submit, run_s, run_s, procs, 0)]
    return BackgroundLoad(column[0], column[1], column[2], column[3], column[4], (("a", "u"),), np.zeros(1), 8)


@pytest.mark.parametrize(
    ("way", "run_s", "procs", "after"),
    [
        ("single", [10, 40, 30, 5], [3] * 4, [-1, 0, -1, 2]),
        ("vertical", [50, 35], [3, 3], [-1, -1]),
        ("horizontal", [30, 40], [6, 6], [-1, 0]),
        ("vertical-horizontal", [50], [6], [-1]),
        ("horizontal-vertical", [70], [6], [-1]),
    ],
)
def test_each_way_of_wrapping(way: str, run_s: list[int], procs: list[int], after: list[int]) -> None:
    """Two members of two chunks, by hand: run times, sizes and what each job needs."""
    wrapped = WRAPPERS[way](Workflow(RUNS, 3))
    assert [column.tolist() for column in wrapped] == [run_s, procs, after]
    assert len(WRAPPERS) == 5


@settings(max_examples=examples(60))
@given(
    runs=st.lists(st.lists(st.integers(1, 90), min_size=3, max_size=3), min_size=1, max_size=4), cpus=st.integers(1, 5)
)
def test_nothing_is_lost_by_wrapping(runs: list[list[int]], cpus: int) -> None:
    """Every way holds at least the processor time of the tasks, and takes at least the longest member."""
    workflow = Workflow(np.array(runs, dtype=np.int64), cpus)
    for wrap in WRAPPERS.values():
        wrapped = wrap(workflow)
        assert (wrapped.run_s * wrapped.procs).sum() >= sum(map(sum, runs)) * cpus
        ends: list[int] = []
        for run_s, after in zip(wrapped.run_s.tolist(), wrapped.after.tolist(), strict=True):
            ends.append(run_s + (ends[after] if after >= 0 else 0))
        assert max(ends) >= workflow.ideal_s


@pytest.mark.parametrize("way", WRAPPERS)
def test_an_empty_machine_starts_a_workflow_at_once(way: str) -> None:
    """Where nobody else runs, no way of wrapping waits longer than a cycle between two jobs."""
    idle = lone(0, 1, 1)
    wrapped = WRAPPERS[way](Workflow(RUNS, 3))
    start, _ = workflow_starts(idle, wrapped, 60, 0.0)
    assert start.min() == 60
    for place, needs in enumerate(wrapped.after.tolist()):
        assert start[place] >= (start[needs] + wrapped.run_s[needs] if needs >= 0 else 60)
    assert time_to_solution(wrapped, start, 60) == int((start + wrapped.run_s).max()) - 60


@pytest.mark.parametrize("share", [0.17, 0.34, 0.5, 0.67, 0.84, 1.0])
def test_usage_gives_the_fair_share_that_is_asked_for(share: float) -> None:
    """With five other users, used amounts between theirs rank the workflow's user as wanted: by its priority."""
    usage = np.array([1e6, 2e6, 3e6, 4e6, 5e6])
    crowd = replace(others(), usage=usage)
    used = crowd.usage_for(share, usage)
    _, priority = workflow_starts(crowd, WRAPPERS["vertical"](Workflow(np.array([[60]]), 1)), 0, used)
    assert priority[0] == pytest.approx(round(share * 6) / 6 * 100_000 + 10_000 / 8, abs=2)


def test_usage_decays_until_an_instant() -> None:
    """What a user held counts by its age: half of it after half-life, nothing of what lies after the instant."""
    week = 7 * 86_400
    one = lone(0, 100, 4)
    start = np.array([0])
    assert one.usage_at(start, 100)[0] == pytest.approx(400, rel=1e-3)
    assert one.usage_at(start, 50)[0] == pytest.approx(200, rel=1e-3)
    assert one.usage_at(start, 100 + week)[0] == pytest.approx(400 * MARENOSTRUM.decays**week, rel=1e-3)
    assert 0.49 < MARENOSTRUM.decays**week < 0.51


def test_more_fair_share_waits_less() -> None:
    """In a static load the queue time falls with the fair share, and priority is its line."""
    small = {"generate": "lumi:jobs=150,processors=4000", "runs": [1800], "cpus": [96]}
    values = {**wrap_static.PARAMETERS, **small}
    found = [wrap_static.rows({**values, "fair_share": share}, 3, Path())[0] for share in (0.05, 0.5, 0.95)]
    waits = [row["queue_s"] for row in found]
    assert waits == sorted(waits, reverse=True)
    assert waits[0] > waits[2]
    assert found[2]["priority"] - found[0]["priority"] == pytest.approx(90_000, rel=0.1)


def test_whole_nodes_hold_more_than_is_asked_for() -> None:
    """Jobs of a few CPUs that hold nodes of 128 make the same load wait longer; wrong nodes and usages are refused."""
    small = {"generate": "lumi:jobs=150,processors=4000", "runs": [1800], "cpus": [96], "fair_share": 0.05}
    values = {**wrap_static.PARAMETERS, **small}
    shared, whole = (wrap_static.rows({**values, "node_cpus": node}, 3, Path())[0] for node in (1, 128))
    assert whole["queue_s"] > shared["queue_s"]
    assert wrap_static.rows({**values, "used_by": "seconds"}, 3, Path())[0]["queue_s"] >= 0
    for wrong in ({"node_cpus": 0}, {"node_cpus": 4001}, {"used_by": "days"}):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            wrap_static.rows({**values, **wrong}, 3, Path())


def test_a_week_has_a_row_for_each_way(tmp_path: Path) -> None:
    """The experiment reads its log beside the study, names what wrapping gains, and refuses what it cannot play."""
    place = np.arange(80, dtype=np.int64)
    load = Load(place * 400, 600 + place, 900 + place, 1 + place % 8, place % 4, place % 4, 8)
    folder = tmp_path
    (folder / "log.swf").write_text("".join(swf_lines(load.table(), 8, {})))
    values = {**wrap_dynamic.PARAMETERS, "swf": "log.swf", "fair_share": 0.4, "instant_h": 2, "task_cpus": 2}
    values |= {"chunks": 3, "members": 2, "task_run_s": 300, "end": 10**9}
    rows = wrap_dynamic.rows(values, 1, folder)
    assert [row["wrapper"] for row in rows] == list(WRAPPERS)
    assert [row["jobs"] for row in rows] == [6, 2, 3, 1, 1]
    single = rows[0]["time_to_solution_s"]
    assert all(row["gain"] == pytest.approx((single - row["time_to_solution_s"]) / 900) for row in rows)
    assert all(row["queue_s"] >= 0 for row in rows)
    for wrong in ({"instant_h": 99}, {"chunks": 0}):
        with pytest.raises(UsageError):
            wrap_dynamic.rows({**values, **wrong}, 1, folder)
