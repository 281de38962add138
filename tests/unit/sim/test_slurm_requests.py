"""What jobs ask of nodes, jobs that can never run, settings of slurm.conf, and a play from the table to the answer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpuwaste.core.errors import ConfigError, NoDataError, UsageError
from gpuwaste.jobs.history.job_table import JobTable, table_of
from gpuwaste.sim.simulation import Machine, simulate
from gpuwaste.sim.slurm import board as b
from gpuwaste.sim.slurm.board_setup import requests_of
from gpuwaste.sim.slurm.cluster_arrays import layout, preemption, scheduler_settings
from gpuwaste.sim.trace import trace_of
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import Association, ClusterModel, LimitSet, Node, Outage, Partition

NODES = (
    *(Node(f"c{k}", 8, 64 << 20, weight=5) for k in range(2)),
    Node("g0", 16, 128 << 20, {"a100": 4}),
    Node("g1", 16, 128 << 20, {"h100": 2}),
    Node("broken", 99, 999 << 20, state="DOWN"),
)
PARTITIONS = (
    Partition("cpu", ("c0", "c1"), default=True, max_time_s=600, max_nodes=2),
    Partition("gpu", ("g0", "g1", "broken"), min_nodes=1, deny_accounts=frozenset({"guest"})),
    Partition("closed", ("c0",), state="DOWN"),
)
SITE = ClusterModel("site", NODES, PARTITIONS)


def record(number: int, tres: str, **known: Any) -> JobRecord:
    """Return a job of partition gpu that ran a minute at once."""
    times: dict[str, Any] = {"submit": 1000 + number, "start": 1000 + number, "end": 1060 + number, "elapsed_s": 60}
    rest: dict[str, Any] = {
        "user": "u",
        "account": "a",
        "partition": "gpu",
        "state": "COMPLETED",
        "time_limit_s": 120,
        "cpus": 1,
    }
    return JobRecord("c", number, **({"req_tres": tres, **times, **rest} | known))


def asked(*jobs: JobRecord, model: ClusterModel = SITE) -> tuple[list[list[int]], dict[str, int]]:
    """Return nodes, CPUs, memory and GPUs of the jobs that can run, and why others were left out."""
    table = table_of(jobs)
    _, requests, left_out = requests_of(table, trace_of(table)[0], model, layout(model))
    return requests.jobs[:, [b.NODES, b.CPUS, b.MEMORY, b.GPUS]].tolist(), left_out


def test_amounts_in_all_become_equal_parts_of_nodes() -> None:
    """Amounts are divided by the nodes asked for and rounded up; without nodes a job gets the fewest that have them."""
    found, left_out = asked(
        record(1, "cpu=9,mem=100M,node=2,gres/gpu=3"),
        record(2, "cpu=17,mem=100M"),
        record(3, "cpu=1,gres/gpu:h100=2"),
    )
    assert (found, left_out) == ([[2, 5, 50 << 20, 2], [2, 9, 50 << 20, 0], [1, 1, 0, 2]], {})


def test_jobs_that_can_never_run_are_left_out_with_their_reason() -> None:
    """Each job that Slurm would never start is counted once, by the first reason."""
    _, left_out = asked(
        record(1, "cpu=1"),
        record(2, "cpu=1", partition="lost"),
        record(3, "cpu=1", partition="closed"),
        record(4, "cpu=1", account="guest"),
        record(5, "cpu=1,gres/gpu:v100=1"),
        record(6, "cpu=1", partition="cpu", time_limit_s=601),
        record(7, "cpu=3,node=3", partition="cpu"),
        record(8, "cpu=2,node=2,gres/gpu:h100=2"),
        record(9, "cpu=17,node=1"),
    )
    assert left_out == {
        "names a partition that the cluster does not have": 1,
        "names a partition that is down": 1,
        "may not use its partition": 1,
        "requests a GPU type that no node has": 1,
        "has a limit above MaxTime of its partition": 1,
        "requests more nodes than MaxNodes of its partition": 1,
        "does not fit on the nodes of its partition": 2,
    }


def test_a_log_of_another_cluster_plays_in_the_default_partition() -> None:
    """If no job names a partition that is there, all are in the default one."""
    table = table_of([record(1, "cpu=1", partition="elsewhere"), record(2, "cpu=1", partition="")])
    _, requests, left_out = requests_of(table, trace_of(table)[0], SITE, layout(SITE))
    assert (requests.jobs[:, b.PARTITION].tolist(), left_out) == ([0, 0], {})


def test_nothing_that_can_run_is_one_error() -> None:
    """A trace of which no job can run is refused with the reasons."""
    with pytest.raises(NoDataError, match="of 1, 1 does not fit on the nodes"):
        asked(record(1, "cpu=99,node=1"))


def test_nodes_by_weight_and_without_those_that_are_down() -> None:
    """Nodes are taken by weight, then as the cluster has them; a node that is down is not there."""
    assert layout(SITE).names == ("g0", "g1", "c0", "c1")


@pytest.mark.parametrize(
    "text",
    [
        "bf_interval=0",
        "bf_window=x",
        "bf_resolution=-1",
        "bf_max_job_test=",
        "default_queue_depth=9999999999",
        "bf_interval=²",
    ],
)
def test_a_bad_parameter_is_named(text: str) -> None:
    """A parameter out of its bounds is refused with its name and its value."""
    with pytest.raises(ConfigError, match=f"SchedulerParameters: {text.partition('=')[0]}="):
        scheduler_settings({"schedulerparameters": f"defer,{text}"})


def test_settings_have_the_defaults_of_slurm() -> None:
    """Without SchedulerParameters the defaults of slurm.conf(5) count, and names are taken in any case."""
    found = scheduler_settings({})
    assert [found[k] for k in (b.INTERVAL, b.WINDOW, b.RESOLUTION, b.MAX_TESTS, b.DEPTH)] == [30, 86400, 60, 500, 100]
    changed = scheduler_settings({"SCHEDULERPARAMETERS": "Defer,BF_Interval=5", "SchedulerType": "sched/builtin"})
    assert [changed[k] for k in (b.INTERVAL, b.DEFER, b.BACKFILLS)] == [5, 1, 0]


def test_a_preempt_type_that_is_none_is_named() -> None:
    """An unknown PreemptType is refused with its value."""
    with pytest.raises(ConfigError, match="PreemptType='preempt/magic'"):
        preemption(
            ClusterModel("x", NODES, PARTITIONS, settings={"PreemptType": "preempt/magic"}), np.zeros((1, 2), int)
        )


def answer(table: JobTable, model: ClusterModel | None, *names: str) -> Any:
    """Return the document of a simulation."""
    return simulate(table, "t", Machine(48, "given"), names, walltime="user", first=None, cluster=model)[0]


@pytest.mark.long
def test_an_answer_has_the_same_jobs_for_all_schedulers_and_gpus_by_type() -> None:
    """Jobs that cannot run on the nodes are left out for all; the result says which GPUs were held, and what failed."""
    jobs = [record(1, "cpu=1,gres/gpu:a100=4"), record(2, "cpu=1,gres/gpu:h100=1"), record(3, "cpu=99,node=1")]
    model = ClusterModel("site", NODES, PARTITIONS, outages=(Outage("g1", 1020, 1100),))
    found = answer(table_of(jobs), model, "easy", "slurm")
    assert {name: result.jobs for name, result in found.schedulers.items()} == {"easy": 2, "slurm": 2}
    # The h100 job starts at the pass of 1004, fails at 1020 and runs again from 1100 to 1160; the span is 1001 to 1160.
    nodes = found.nodes["slurm"]
    assert nodes.gpu_utilization == {"a100": round(60 / 159, 6), "h100": round((16 + 60) / (2 * 159), 6)}
    assert (nodes.requeued, nodes.cut_short, nodes.never_started) == (1, 0, 0)
    assert found.left_out == {"does not fit on the nodes of its partition": 1}


@pytest.mark.long
def test_an_answer_counts_the_jobs_that_limits_held_back() -> None:
    """A job that waited for a limit is counted by the word that squeue prints, and none where limits do not hold."""
    one = LimitSet(max_jobs_per_user=1)
    jobs = table_of([record(1, "cpu=1"), record(2, "cpu=1"), record(3, "cpu=1", user="v")])
    users = (Association("root", parent=""), Association("a"), Association("a", "u", limits=one))
    for enforced, expected in (("limits", {"AssocMaxJobsLimit": 1}), ("none", {})):
        model = replace(SITE, associations=users, settings={"AccountingStorageEnforce": enforced})
        assert answer(jobs, model, "slurm").nodes["slurm"].held == expected


def test_slurm_without_a_cluster_is_refused() -> None:
    """Without a machine of nodes the scheduler names the options that give one."""
    with pytest.raises(UsageError, match="--scheduler slurm places jobs on nodes: describe them with --machine FILE"):
        answer(table_of([record(1, "cpu=1")]), None, "slurm")
