"""What-ifs on a cluster's nodes: what each one changes of jobs, nodes, partitions and settings, and what it refuses."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.sim.tables import Ran, case_of, history

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.sim.counterfactual import check_schedulers, compared
from gpuwaste.sim.document import Difference
from gpuwaste.sim.simulation import Machine, simulate
from gpuwaste.sim.whatif import WhatIfCase, changed, label, parsed, with_count
from gpuwaste.slurm.site.cluster_model import (
    Association,
    ClusterModel,
    LimitSet,
    Node,
    Outage,
    Partition,
    Reservation,
)

MULTIFACTOR = {"PriorityType": "priority/multifactor", "PriorityWeightFairShare": "1000"}
SITE = ClusterModel(
    "site",
    (Node("a1", 8, 0, {"a100": 4}), Node("a2", 8, 0, {"a100": 4}), Node("c1", 16, 0), Node("off", 8, 0, state="DOWN")),
    (Partition("p", ("a1", "a2"), default=True), Partition("cpu", ("c1", "off"))),
    reservations=(Reservation("r", ("a1", "c1"), 10**9, 10**9 + 1),),
    outages=(Outage("a2", 10**9, 10**9 + 1),),
    settings=MULTIFACTOR,
)


def on_site(jobs: Sequence[Ran], cluster: ClusterModel = SITE, resource: str = "gpus") -> WhatIfCase:
    """Return the case of jobs on a cluster."""
    return replace(
        case_of(history(jobs), cluster.size(gpus=resource == "gpus"), resource), cluster=cluster, counts=False
    )


def played(jobs: Sequence[Ran], *words: str, cluster: ClusterModel = SITE) -> list[Difference]:
    """Return the differences that what-ifs make under slurm."""
    case = on_site(jobs, cluster)
    machine = Machine(case.processors, "given")
    document, trace, plays = simulate(
        case.table, "t", machine, ("slurm",), walltime="user", first=None, resource="gpus", cluster=cluster
    )
    *_, found = compared(document, replace(case, trace=trace), plays, parsed(words))
    return found.document.differences


@pytest.mark.long
def test_smaller_requests_share_a_node() -> None:
    """Four jobs ask for all 4 GPUs of a node and use one: as asked two wait, right-sized all start at once."""
    jobs = [Ran(0, 600, 600, 4, active=1)] * 4
    (found,) = played(jobs, "gpus")
    waits, held = found.figures["mean_wait_s"], found.figures["held_h"]
    assert waits.base >= 300
    assert waits.changed <= 60
    assert held.base == pytest.approx(4 * 4 / 6, abs=1e-5)
    assert held.changed == pytest.approx(4 / 6, abs=1e-5)
    assert found.gpu_utilization["a100"].base > 0.9
    assert found.gpu_utilization["a100"].changed < 0.6


@pytest.mark.long
def test_more_nodes_shorten_waits_and_fewer_leave_jobs_out() -> None:
    """With two more nodes nobody waits; a partition's shorter limit leaves out the job above it, on both sides."""
    jobs = [Ran(0, 600, 600, 4)] * 4 + [Ran(1, 900, 1200, 4)]
    more, fewer, limit = played(jobs, "nodes:a100=+3", "processors=0.5", "partition:p:MaxTime=15")
    assert (more.figures["mean_wait_s"].changed <= 60, more.processors) == (True, 20)
    assert (fewer.processors, fewer.figures["mean_wait_s"].difference > 0) == (4, True)
    assert limit.jobs == 4
    assert limit.facts["jobs left out because each has a limit above MaxTime of its partition"] == 1
    assert limit.figures["held_h"].difference == 0


def test_jobs_without_a_gpu_stay_on_nodes_alone() -> None:
    """A job that used no GPU stays with none where every scheduler has nodes, and leaves where one counts."""
    case = on_site([Ran(0, 600, 600, 4, active=0), Ran(0, 600, 600, 4, active=2)])
    alone, beside = (changed(replace(case, counts=counts), "gpus", "") for counts in (False, True))
    assert (alone.trace.procs.tolist(), beside.trace.procs.tolist()) == ([0, 2], [2])
    for found in (alone, beside):
        assert found.table is not None
        assert found.table.gpus.tolist() == [0, 2]


def test_more_nodes_are_copies_in_the_same_places() -> None:
    """Each node is copied in turn into its partitions and reservations, without its outages."""
    found = changed(on_site([Ran(0, 10, 60)]), "nodes", "a100=+3").cluster
    assert found is not None
    assert [node.name for node in found.nodes] == ["a1", "a1+1", "a1+2", "a2", "a2+1", "c1", "off"]
    assert found.partitions[0].nodes == ("a1", "a1+1", "a1+2", "a2", "a2+1")
    assert found.reservations[0].nodes == ("a1", "a1+1", "a1+2", "c1")
    assert found.outages == SITE.outages
    assert found.size(gpus=True) == 20


def test_fewer_nodes_are_gone_everywhere() -> None:
    """The last nodes of the type leave partitions and outages; without the name of a type, cpu and gpu stand for it."""
    found = changed(on_site([Ran(0, 10, 60)]), "nodes", "A100=0.5").cluster
    assert found is not None
    assert [node.name for node in found.nodes] == ["a1", "c1", "off"]
    assert (found.partitions[0].nodes, found.outages) == (("a1",), ())
    plain = changed(on_site([Ran(0, 10, 60)], resource="processors"), "nodes", "cpu=-1").cluster
    assert plain is not None
    assert [node.name for node in plain.nodes] == ["a1", "a2", "off"]


def test_a_factor_changes_each_kind_of_node() -> None:
    """Twice the machine is twice each kind of node that is up."""
    found = changed(on_site([Ran(0, 10, 60)]), "processors", "2")
    assert found.cluster is not None
    assert (len(found.cluster.nodes), found.processors) == (7, 16)


def test_no_more_nodes_than_a_machine_file_may_have() -> None:
    """A step beyond the bound of machine files is refused before any node is made."""
    with pytest.raises(UsageError, match="expected at most 200000"):
        with_count(SITE, ["a1"], 10**9)


def test_priorities_change_by_the_names_of_slurm_conf() -> None:
    """Short and full names in any case replace the settings; the notes say what they were."""
    found = changed(on_site([Ran(0, 10, 60)]), "priority", "fairshare=0+PriorityWeightAge=1000+decayhalflife=1-0")
    assert found.cluster is not None
    settings = found.cluster.settings
    assert (settings["PriorityWeightFairShare"], settings["PriorityWeightAge"]) == ("0", "1000")
    assert settings["PriorityDecayHalfLife"] == "1-00:00:00"
    assert found.notes[0] == "PriorityWeightFairShare is 0 instead of 1000."
    assert found.notes[1] == "PriorityWeightAge is 1000 instead of the default."


def test_a_partition_changes_by_the_names_of_slurm_conf() -> None:
    """Limits and tiers of the named partition are replaced, those of others stay."""
    found = changed(on_site([Ran(0, 10, 60)]), "partition", "p:MaxTime=12:00:00+prioritytier=7+MaxNodes=UNLIMITED")
    assert found.cluster is not None
    part, other = found.cluster.partitions
    assert (part.max_time_s, part.priority_tier, part.max_nodes) == (43200, 7, None)
    assert other == SITE.partitions[1]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("nodes", "", "types: a100, cpu"),
        ("nodes", "h100=+1", "types: a100, cpu"),
        ("nodes", "a100=", "expected a factor such as 1.2"),
        ("nodes", "a100=-9", "that leaves at least 0 "),
        ("processors", "1.01", "leaves the nodes as they are"),
        ("priority", "", "separated by \\+"),
        ("priority", "nice=3", "settings: PriorityCalcPeriod"),
        ("priority", "fairshare=-1", "fairshare|FairShare"),
        ("priority", "type=priority/basic", "has no weights"),
        ("partition", "x:MaxTime=1", "partitions: p, cpu"),
        ("partition", "p", "expected SETTING=VALUE"),
        ("partition", "p:MaxTime=soon", "MaxTime"),
        ("partition", "p:PriorityTier=99999", "out of range"),
        ("partition", "p:\x1b[31mNice=9", "expected SETTING=VALUE of MaxTime"),
    ],
)
def test_words_that_are_none_are_refused_in_one_line(name: str, value: str, said: str) -> None:
    """Unknown types, partitions and settings, and values out of range are named with what is expected."""
    with pytest.raises(UsageError, match=said) as raised:
        changed(on_site([Ran(0, 10, 60)]), name, value)
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("name", ["nodes", "partition", "priority"])
def test_they_need_a_scheduler_on_nodes(name: str) -> None:
    """Without nodes, or beside a scheduler that counts, they are refused with the options that give nodes."""
    with pytest.raises(UsageError, match="--scheduler slurm"):
        changed(case_of(history([Ran(0, 10, 60)])), name, "x=1")
    with pytest.raises(UsageError, match="--scheduler easy counts"):
        check_schedulers(((name, "x=1"),), ("slurm", "easy"))
    check_schedulers((("wrap", ""), ("limits", "")), ("slurm", "easy"))


def test_chains_become_one_job_each() -> None:
    """Jobs submitted soon after the one before has ended are one chain; another size or a pause ends it."""
    jobs = [
        Ran(0, 100, 600), Ran(110, 50, 600, 2), Ran(150, 100, 600), Ran(260, 300, 1200, wait=40), Ran(400, 9, 600),
        Ran(700, 5, 4000), Ran(5000, 7, 600),
    ]  # fmt: skip
    found = changed(case_of(history(jobs)), "wrap", "")
    assert found.trace.row.tolist() == [0, 1, 4, 5, 6]
    assert (found.trace.run_s[0], found.trace.limit_s[0]) == (500, 2400)
    assert found.wrapped is not None
    assert found.wrapped.tolist() == [0, 1, 0, 0, 4, 5, 6]
    assert (found.facts["chains"], found.facts["jobs in chains"]) == (1, 3)
    assert found.table is not None
    assert found.table.limit_s[0] == 2400


def test_a_wrapper_keeps_to_the_limit_of_its_partition() -> None:
    """A chain is cut where its limits would add up to more than MaxTime."""
    jobs = [Ran(100 * k, 50, 600) for k in range(5)]
    short = replace(SITE, partitions=(replace(SITE.partitions[0], max_time_s=1200), SITE.partitions[1]))
    found = changed(on_site(jobs, short), "wrap", "30")
    assert found.trace.limit_s.tolist() == [1200, 1200, 600]


@pytest.mark.parametrize("value", ["0", "1441", "x", "-5", "٣", "1" * 99])
def test_minutes_out_of_range_are_refused(value: str) -> None:
    """A short job has a limit of a minute to a day."""
    with pytest.raises(UsageError, match="expected minutes from 1 to 1440"):
        changed(case_of(history([Ran(0, 10, 60)])), "wrap", value)


def test_a_history_without_chains_is_told() -> None:
    """Jobs that overlap are no chain."""
    with pytest.raises(NoDataError, match="no user has a chain"):
        changed(case_of(history([Ran(0, 100, 600), Ran(50, 100, 600)])), "wrap", "")


def test_the_time_of_chains_is_compared() -> None:
    """Under FCFS on a full machine the wrapped chain waits once: both sides have first submission to last end."""
    jobs = [Ran(0, 1000, 1000, 4, "other"), Ran(10, 50, 600), Ran(70, 50, 600)]
    case = case_of(history(jobs), 4)
    document, trace, plays = simulate(
        case.table, "t", Machine(4, "given"), ("fcfs",), walltime="user", first=None, resource="gpus"
    )
    *_, found = compared(document, replace(case, trace=trace), plays, (("wrap", ""),))
    (wrap,) = found.document.differences
    chain = wrap.figures["mean_chain_s"]
    assert (chain.base, chain.changed) == (1000 + 50 - 10, 1000 + 100 - 10)
    assert wrap.jobs == 2


def test_labels_read_as_they_were_written() -> None:
    """A what-if with settings is written with a colon, one with a number with an equals sign."""
    words = ("priority:fairshare=0", "limits=0.9", "gpus", "partition:p:MaxTime=1-0")
    assert tuple(label(*each) for each in parsed(words)) == words


@pytest.mark.long
def test_jobs_that_never_start_are_in_no_figure() -> None:
    """A job that a limit holds for ever counts as a fact, and its missing start in no wait."""
    jobs = [Ran(0, 60, 600, 1), Ran(10, 60, 600, 4)]
    root = Association("root", parent="", limits=LimitSet(max_tres_per_job={"gres/gpu": 2}))
    site = replace(SITE, reservations=(), outages=(), associations=(root, Association("root", "u")))
    (found,) = played(jobs, "limits", cluster=site)
    assert 0 <= found.figures["mean_wait_s"].base <= 60
    assert found.figures["makespan_s"].base <= 180
