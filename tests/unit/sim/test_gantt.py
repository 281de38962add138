"""Which job held which GPU: the log of a second play agrees with the first, and bars never lie on one another."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.unit.sim.tables import Ran, history

from gpuwaste.core.errors import NoDataError
from gpuwaste.core.units import DAY_S
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim.document import GanttWindow
from gpuwaste.sim.gantt import MOST_BARS, gantt, window_of
from gpuwaste.sim.schedule_metrics import Placed, Placements
from gpuwaste.sim.schedulers import slurm
from gpuwaste.sim.trace import GPUS, Trace, trace_of
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Outage, Partition


def cluster(gpus: int = 4, **more: Any) -> ClusterModel:
    """Return two nodes of these GPUs, of 8 CPUs, and one without."""
    kinds = {"a100": gpus} if gpus else {}
    nodes = (Node("cpu1", 8, 0), Node("gpu1", 8, 0, kinds, weight=2), Node("gpu2", 8, 0, kinds, weight=3))
    part = Partition("p", tuple(node.name for node in nodes), default=True)
    return ClusterModel("c", nodes, (part,), **more)


def jobs_of(rows: Sequence[Ran]) -> tuple[JobTable, Trace]:
    """Return the jobs, which hold as many GPUs as CPUs."""
    table = history(rows)
    return table, trace_of(table, None, GPUS)[0]


def mixed(count: int = 60) -> list[Ran]:
    """Return jobs of 1, 2 and 4 GPUs that wait for one another."""
    rng = np.random.default_rng(1)
    return [Ran(40 * n, int(rng.integers(20, 400)), 500, int(2 ** rng.integers(0, 3))) for n in range(count)]


def both(
    rows: Sequence[Ran], model: ClusterModel, window: tuple[int, int]
) -> tuple[JobTable, Trace, Placed, Placements]:
    """Return the whole play, and what a second one kept of the window."""
    table, trace = jobs_of(rows)
    played = slurm.starts_on(table, trace, model, trace.limit_s)
    return table, trace, played, slurm.placements(table, trace, model, trace.limit_s, window)


def drawn(rows: Sequence[Ran], model: ClusterModel, window: tuple[int, int]) -> GanttWindow:
    """Return the chart."""
    table, trace, _, kept = both(rows, model, window)
    return gantt("slurm", kept, trace, table.job_id[trace.row], model.outages, window)


def test_a_second_play_keeps_what_the_first_one_did() -> None:
    """Each job that runs in the window is in the log once for each of its nodes, at the start of the whole play."""
    first, last = 600, 2000
    _, trace, played, kept = both(mixed(), cluster(), (first, last))
    inside = (played.start < last) & (played.start + trace.run_s > first)
    assert sorted(kept.job.tolist()) == np.flatnonzero(inside).tolist()
    assert kept.start.tolist() == played.start[kept.job].tolist()
    assert kept.end.tolist() == (played.start + trace.run_s)[kept.job].tolist()
    assert kept.gpus.tolist() == trace.procs[kept.job].tolist()
    assert (kept.nodes_left, kept.rows_left) == (1, 0), "the node without GPUs is left out"


def test_no_gpu_is_held_twice() -> None:
    """Bars of one node that share a GPU follow one another, and each job has as many GPUs as it asked for."""
    found = drawn(mixed(), cluster(), (0, 20_000))
    assert [(node.name, node.gpus) for node in found.nodes] == [("gpu1", 4), ("gpu2", 4)]
    sizes: dict[int, int] = {}
    ends: dict[tuple[int, int], int] = {}
    for bar in found.bars:
        sizes[bar.job_id] = sizes.get(bar.job_id, 0) + bar.count
        for gpu in range(bar.first, bar.first + bar.count):
            assert gpu < 4
            assert ends.get((bar.node, gpu), 0) <= bar.start
            ends[bar.node, gpu] = bar.end
    assert sizes == {n: job.size for n, job in enumerate(mixed())}
    assert found.left_out == {"nodes": 1}


def test_a_job_that_a_failure_ends_has_a_bar_for_each_run() -> None:
    """The node fails while the job runs: the bar ends there, the second run has its own, and the outage is told."""
    model = cluster(outages=(Outage("gpu1", 50, 400), Outage("cpu1", 0, 10)))
    found = drawn([Ran(0, 100, 200, 1)], model, (0, 1000))
    (one, two) = found.bars
    assert (one.start, one.end) == (0, 50)
    assert two.start >= 50
    assert two.end == two.start + 100
    assert two.waited_s == two.start, "from the submission on"
    assert [node.down for node in found.nodes] == [[(50, 400)], []]


def test_a_cluster_without_gpus_shares_lanes_by_cpu() -> None:
    """Jobs of 1, 2 and 4 CPUs have the lowest free CPUs of their node."""
    table = history([Ran(0, 100, 100, 2), Ran(0, 50, 100, 4), Ran(60, 100, 100, 2)])
    trace, _ = trace_of(table, 24)
    model = cluster(0)
    table.gpus[:] = 0
    kept = slurm.placements(table, trace, model, trace.limit_s, (0, 200))
    found = gantt("slurm", kept, trace, table.job_id[trace.row], (), (0, 200))
    assert {(bar.job_id, bar.first, bar.count) for bar in found.bars if found.nodes[bar.node].name == "cpu1"} == {
        (0, 0, 2), (1, 2, 4), (2, 2, 2),
    }  # fmt: skip


def test_more_bars_than_are_drawn_are_counted() -> None:
    """Of a node with too many bars the longest are drawn; the next node is left out as a whole; both are counted."""
    jobs = MOST_BARS + 20
    rows = np.arange(jobs)
    kept = Placements(
        nodes=(Node("g1", 1, 0, {"": 1}), Node("g2", 1, 0, {"": 1})),
        node=np.append(np.zeros(jobs, np.int64), 1),
        job=np.zeros(jobs + 1, np.int64),
        start=np.append(rows * 10, 0),
        end=np.append(rows * 10 + 1 + rows % 9, 5),
        cpus=np.ones(jobs + 1, np.int64),
        gpus=np.ones(jobs + 1, np.int64),
        nodes_left=3,
        rows_left=7,
    )
    _, trace = jobs_of([Ran(0, 10, 10)])
    found = gantt("slurm", kept, trace, np.array([5]), (), (0, 10 * jobs))
    assert len(found.bars) == MOST_BARS
    assert found.left_out == {"nodes": 4, "bars": 27}


def test_the_window_is_the_day_around_the_deepest_queue() -> None:
    """Most jobs wait on the third of five days; a trace of an hour is shown whole; a window beside it is refused."""
    rows = [Ran(DAY_S * n, 10, 10) for n in range(6)] + [Ran(int(2.5 * DAY_S), 10, 10)] * 3
    _, trace = jobs_of(sorted(rows))
    start = trace.submit.copy()
    start[trace.submit == int(2.5 * DAY_S)] += [0, 100, 200]
    assert window_of(None, trace, start) == (2 * DAY_S, 3 * DAY_S)
    _, short = jobs_of([Ran(100, 10, 10), Ran(3600, 50, 50)])
    assert window_of(None, short, short.submit) == (100, 3650)
    assert window_of((0, 200), short, short.submit) == (0, 200)
    for window in ((0, 100), (3650, 9000)):
        with pytest.raises(NoDataError, match="no job runs in the window"):
            window_of(window, short, short.submit)
