"""Limits of QOS and associations against a plain definition, and Slurm's reasons for each limit."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.sim.limits_reference import Asked, plainly_held

from gpuwaste.sim.accounts import accounts_of
from gpuwaste.sim.assoc_limits import (
    LimitTable,
    LimitUse,
    limit_table,
    no_use,
    qos_order,
    reason,
    tres_names,
    tres_row,
    unmodelled,
)
from gpuwaste.sim.limit_checks import charge_wall, count_job, held_by
from gpuwaste.slurm.site.cluster_model import Association, ClusterModel, LimitSet, Node, Partition, Qos

pytestmark = pytest.mark.long

GIB = 2**30
TREE = (("root", "", ""), ("dept", "", "root"), ("lab", "", "dept"), ("lab", "ann", ""), ("lab", "bob", ""))


def model(qos: list[Qos], limits: Mapping[int, LimitSet]) -> ClusterModel:
    """Return a cluster with these QOS and limits by the place in TREE."""
    nodes = (Node("n1", 8, 64 * GIB, {"a100": 4}),)
    associations = tuple(
        Association(account, user, parent, limits=limits.get(place, LimitSet()))
        for place, (account, user, parent) in enumerate(TREE)
    )
    return ClusterModel("c", nodes, (Partition("p", ("n1",)),), qos=tuple(qos), associations=associations)


class Cluster:
    """A model with its table and its use, for one job after the other."""

    def __init__(self, made: ClusterModel, *, safe: bool = False, hold: bool = True) -> None:
        self.model, self.names = made, tres_names(made)
        self.table: LimitTable = limit_table(made, accounts_of(made.associations), self.names, safe=safe, hold=hold)
        self.use: LimitUse = no_use(self.table, 2)

    def held(self, job: Asked) -> str:
        amounts, order = tres_row(self.names, job.amounts), qos_order(self.model, job.qos, job.partition_qos)
        code = held_by(self.table, self.use, order, 3 + job.user, job.user, amounts, job.limit_s)
        return reason(self.names, code)

    def count(self, job: Asked, sign: int) -> None:
        amounts, order = tres_row(self.names, job.amounts), qos_order(self.model, job.qos, job.partition_qos)
        count_job(self.table, self.use, order, 3 + job.user, job.user, amounts, sign)


amounts = st.fixed_dictionaries(
    {"cpu": st.integers(1, 8), "node": st.integers(1, 2)},
    optional={"gres/gpu": st.integers(0, 4), "mem": st.sampled_from([GIB, 8 * GIB])},
)
some = st.dictionaries(
    st.sampled_from(["cpu", "gres/gpu", "mem", "node"]), st.sampled_from([0, 2, 5, 9, GIB]), max_size=2
)
no_limits = st.just(LimitSet())
qos_limits = st.builds(
    LimitSet, grp_tres=some, max_tres_per_job=some, max_tres_per_node=some, max_tres_per_user=some,
    grp_jobs=st.sampled_from([None, 0, 3]), max_jobs_per_user=st.sampled_from([None, 1, 2]),
    max_wall_s=st.sampled_from([None, 3600]),
)  # fmt: skip
above_limits = st.builds(LimitSet, grp_tres=some, grp_jobs=st.sampled_from([None, 2, 3]))
leaf_limits = st.builds(
    LimitSet, grp_tres=some, max_tres_per_job=some, max_tres_per_node=some, grp_jobs=st.sampled_from([None, 2]),
    max_jobs_per_user=st.sampled_from([None, 1, 2]), max_wall_s=st.sampled_from([None, 3600]),
)  # fmt: skip
jobs = st.builds(
    Asked, st.integers(0, 1), st.integers(-1, 1), st.integers(-1, 1), amounts, st.sampled_from([60, 3600, 7200])
)


@settings(max_examples=examples(400))
@given(
    qos=st.tuples(qos_limits | no_limits, qos_limits | no_limits, st.booleans()),
    tree=st.tuples(above_limits | no_limits, above_limits | no_limits, leaf_limits | no_limits),
    asked=st.lists(jobs, min_size=1, max_size=8),
)
def test_a_job_starts_when_the_definition_lets_it(
    qos: tuple[LimitSet, LimitSet, bool],
    tree: tuple[LimitSet, LimitSet, LimitSet],
    asked: list[Asked],
) -> None:
    """Whether each of several jobs may start beside those before it is the plain definition's answer."""
    flags = frozenset({"OverPartQOS"} if qos[2] else ())
    named = [Qos("a", limits=qos[0], flags=flags), Qos("b", limits=qos[1])]
    made = model(named, {0: tree[0], 2: tree[1], 3: tree[2]})
    cluster = Cluster(made)
    running: list[Asked] = []
    for job in asked:
        held = cluster.held(job)
        above = (LimitSet() if job.user else tree[2], tree[1], LimitSet(), tree[0])
        assert bool(held) == plainly_held(made, above, job, running), held
        if not held:
            cluster.count(job, 1)
            running.append(job)
    for job in running:
        cluster.count(job, -1)
    assert not any(table.any() for table in cluster.use)


def gpu_job(user: int = 0, partition_qos: int = -1, qos: int = 0, limit_s: int = 3600) -> Asked:
    """Return a job on two nodes with a GPU on each."""
    amounts = {"cpu": 4, "mem": 16 * GIB, "node": 2, "billing": 4, "gres/gpu": 2, "gres/gpu:a100": 2}
    return Asked(user, qos, partition_qos, amounts, limit_s)


@pytest.mark.parametrize(
    ("limits", "of_qos", "of_association"),
    [
        (LimitSet(grp_jobs=1), "QOSGrpJobsLimit", "AssocGrpJobsLimit"),
        (LimitSet(max_jobs_per_user=1), "QOSMaxJobsPerUserLimit", "AssocMaxJobsLimit"),
        (LimitSet(max_wall_s=3599), "QOSMaxWallDurationPerJobLimit", "AssocMaxWallDurationPerJobLimit"),
        (LimitSet(grp_wall_s=0), "QOSGrpWallLimit", "AssocGrpWallLimit"),
        (LimitSet(grp_tres={"cpu": 7}), "QOSGrpCpuLimit", "AssocGrpCpuLimit"),
        (LimitSet(grp_tres={"node": 3}), "QOSGrpNodeLimit", "AssocGrpNodeLimit"),
        (LimitSet(grp_tres={"mem": 31 * GIB}), "QOSGrpMemLimit", "AssocGrpMemLimit"),
        (LimitSet(grp_tres={"billing": 7}), "QOSGrpBilling", "AssocGrpBilling"),
        (LimitSet(grp_tres={"gres/gpu": 3}), "QOSGrpGRES", "AssocGrpGRES"),
        (LimitSet(max_tres_per_job={"cpu": 3}), "QOSMaxCpuPerJobLimit", "AssocMaxCpuPerJobLimit"),
        (LimitSet(max_tres_per_job={"mem": GIB}), "QOSMaxMemoryPerJob", "AssocMaxMemPerJob"),
        (LimitSet(max_tres_per_job={"gres/gpu:A100": 1}), "QOSMaxGRESPerJob", "AssocMaxGRESPerJob"),
        (LimitSet(max_tres_per_node={"cpu": 1}), "QOSMaxCpuPerNode", "AssocMaxCpuPerNode"),
        (LimitSet(max_tres_per_user={"cpu": 7}), "QOSMaxCpuPerUserLimit", ""),
        (LimitSet(max_tres_per_user={"gres/gpu": 3}), "QOSMaxGRESPerUser", ""),
    ],
)
def test_each_limit_has_slurm_s_reason(limits: LimitSet, of_qos: str, of_association: str) -> None:
    """Beside a job of the same user a second one is held by each limit, with the word that squeue prints."""
    for made, expected in (
        (model([Qos("q", limits=limits)], {}), of_qos),
        (model([Qos("q")], {3: limits}), of_association),
    ):
        cluster = Cluster(made)
        cluster.count(gpu_job(), 1)
        assert cluster.held(gpu_job()) == expected


def test_a_limit_above_holds_and_a_limit_per_job_is_inherited() -> None:
    """GrpJobs of a department counts all below it; MaxWall of an account is that of its users who set none."""
    cluster = Cluster(model([Qos("q")], {1: LimitSet(grp_jobs=1, max_wall_s=60), 4: LimitSet(max_wall_s=3600)}))
    assert cluster.held(gpu_job()) == "AssocMaxWallDurationPerJobLimit"
    assert cluster.held(gpu_job(user=1)) == ""
    cluster.count(gpu_job(user=1), 1)
    assert cluster.held(gpu_job(limit_s=60)) == "AssocGrpJobsLimit"


def test_the_partition_s_qos_comes_first() -> None:
    """What the partition's QOS sets, the job's QOS and the association no longer limit; OverPartQOS turns it round."""
    wide, narrow = LimitSet(max_wall_s=7200), LimitSet(max_wall_s=60)
    for flags, expected in ((frozenset[str](), ""), (frozenset({"OverPartQOS"}), "QOSMaxWallDurationPerJobLimit")):
        made = model([Qos("job", limits=narrow, flags=flags), Qos("part", limits=wide)], {3: narrow})
        assert Cluster(made).held(gpu_job(partition_qos=1)) == expected


def test_wall_time_counts_by_whole_minutes() -> None:
    """A group's wall holds from the minute on that it is used up; `safe` counts the job's own limit too."""
    made = model([Qos("q", limits=LimitSet(grp_wall_s=7200))], {})
    for safe, used, expected in (
        (False, 7199.0, ""),
        (False, 7200.0, "QOSGrpWallLimit"),
        (True, 3659.0, ""),
        (True, 3660.0, "QOSGrpWallLimit"),
    ):
        cluster = Cluster(made, safe=safe)
        cluster.use.qos_wall[0] = used
        assert cluster.held(gpu_job()) == expected


def test_limits_that_do_not_hold() -> None:
    """Without `limits` in AccountingStorageEnforce nothing is held, nor a job that has no association or QOS."""
    made = model([Qos("q", limits=LimitSet(grp_jobs=0))], {0: LimitSet(grp_jobs=0)})
    assert Cluster(made, hold=False).held(gpu_job()) == ""
    cluster = Cluster(model([Qos("q", limits=LimitSet(grp_jobs=0))], {}))
    assert cluster.held(gpu_job(qos=-1)) == ""
    assert held_by(cluster.table, cluster.use, (-1, -1), -1, 0, np.ones(len(cluster.names)), 60) == 0


def test_walls_add_up_to_root_and_other_tres_are_named() -> None:
    """A running job's wall counts for both QOS and each account above; a limit of licenses is told to be left out."""
    limits = LimitSet(grp_wall_s=60, grp_tres={"license/abaqus": 3, "CPU": 99})
    cluster = Cluster(
        model([Qos("a", limits=limits), Qos("b")], {1: limits, 4: LimitSet(max_tres_per_job={"energy": 1})})
    )
    charge_wall(cluster.table, cluster.use, (0, 1), 3, 59.5)
    assert cluster.use.qos_wall.tolist() == [59.5, 59.5, 0.0]
    assert cluster.use.assoc_wall.tolist() == [59.5, 59.5, 59.5, 59.5, 0.0]
    assert cluster.held(gpu_job()) == ""
    charge_wall(cluster.table, cluster.use, (-1, -1), 4, 0.5)
    assert cluster.held(gpu_job(qos=1)) == "AssocGrpWallLimit"
    assert unmodelled(cluster.model, cluster.names) == ("energy", "license/abaqus")
