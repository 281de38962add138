"""Rules that `sbatch --test-only` does not check: partitions, QOS and associations, each with what is left."""

import pytest
from tests.unit.plan.facts import CONFIG, LIMITS, PARTITIONS, UID, Answers, site, submission

from gpuwaste.plan.builder import _asked
from gpuwaste.plan.plan_request import PlanRequest
from gpuwaste.plan.request_limits import problems, waits
from gpuwaste.plan.user_site import read_site


def asked(*options: str, **texts: str | None) -> PlanRequest:
    """Return what alice asks for at the site."""
    ((request, given),) = submission(*options).read()
    return _asked(request, site(**texts), given)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), []),
        (
            ("--time=4-0",),
            ["partition gpu: time limit at most 3 d", "user alice in account proj1: time limit at most 2 d"],
        ),
        (("--partition=staff",), ["partition staff is not open to account proj1"]),
        (("--qos=high", "--time=30"), []),
        (("--qos=high", "--time=2:00:00"), ["QOS high: time limit at most 1 h"]),
        (("--qos=high", "--time=30", "--gres=gpu:4"), ["QOS high: at most 3 GPUs for a job"]),
        (("--qos=high", "--time=30", "--mem=128G"), ["QOS high: at most 64.0 GiB of memory for all its jobs"]),
        (("--qos=other",), ["you may not use QOS other in account proj1"]),
        (("--nodes=3",), ["partition gpu: at most 2 nodes for a job"]),
        (("--nodes=2", "--ntasks=64"), ["account proj1: at most 40 CPUs for all its jobs"]),
        (("--partition=staff,gpu",), []),
    ],
)
def test_each_limit_is_named(options: tuple[str, ...], said: list[str]) -> None:
    """A request above a limit has a reason that names the limit and whose it is; within all limits it has none."""
    assert problems(asked(*options)) == said


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (None, []),
        (frozenset({"alice", "physics"}), []),
        (frozenset({"alice"}), ["partition gpu is open only to the groups chem, physics"]),
    ],
)
def test_partition_of_other_groups_is_a_reason(groups: frozenset[str] | None, said: list[str]) -> None:
    """A user in none of AllowGroups would wait for ever on Slurm 24.11; groups that are not known are no reason."""
    text = PARTITIONS.replace("AllowGroups=ALL", "AllowGroups=physics,chem", 1)
    ((request, given),) = submission().read()
    assert problems(_asked(request, read_site(Answers(partition=text), "alice", UID, groups), given)) == said


QOS_OF_A_WEEK = "MaxWallPJ=10080\n    MaxTRESPJ=gres/gpu=16"
OWN = "MaxWallPJ=1440\n    MaxTRESPJ=gres/gpu=4"
IN_BOTH = (
    LIMITS.replace("MaxWallPJ=60\n    MaxTRESPJ=gres/gpu=3", QOS_OF_A_WEEK)
    .replace("gres/gpu=6(2)", "gres/gpu=N(2)")
    .replace("gres/gpu=8(6)", "gres/gpu=N(6)")
    .replace("MaxTRESPU=cpu=N(1),mem=N(500),gres/gpu=5(2)", "MaxTRESPU=cpu=N(1)")
    .replace("MaxWallPJ=2880\n    MaxTRESPJ=", OWN)
)
LONG = PARTITIONS.replace("MaxTime=3-00:00:00", "MaxTime=UNLIMITED")
OF_PARTITION = LONG.replace("AllocNodes=ALL Default=YES QoS=N/A", "AllocNodes=ALL Default=YES QoS=part")
PART = "QOS=part(3)\n    MaxWallPJ=120\n    MaxTRESPJ=gres/gpu=2\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--qos=high", "--time=3-0", "--gres=gpu:8"), []),
        (("--qos=high", "--time=8-0"), ["QOS high: time limit at most 7 d"]),
        (("--qos=high", "--gres=gpu:17"), ["QOS high: at most 16 GPUs for a job"]),
        (
            ("--time=3-0", "--gres=gpu:8"),
            [
                "user alice in account proj1: time limit at most 1 d",
                "user alice in account proj1: at most 4 GPUs for a job",
            ],
        ),
    ],
)
def test_limit_of_a_qos_replaces_that_of_the_association(options: tuple[str, ...], said: list[str]) -> None:
    """A QOS of 7 days and 16 GPUs opens them to a user whose association has 1 day and 4 GPUs, as in slurmctld."""
    assert problems(asked(*options, partition=LONG, assoc_mgr=IN_BOTH)) == said


@pytest.mark.parametrize(
    ("flags", "options", "said"),
    [
        ("", ("--qos=high", "--time=3-0"), ["QOS part: time limit at most 2 h"]),
        ("", ("--qos=high", "--time=1:00:00", "--gres=gpu:4"), ["QOS part: at most 2 GPUs for a job"]),
        ("DenyOnLimit,OverPartQOS", ("--qos=high", "--time=3-0", "--gres=gpu:4"), []),
        ("OverPartQOS", ("--qos=high", "--time=8-0"), ["QOS high: time limit at most 7 d"]),
        ("OverPartQOS", ("--time=1-0", "--gres=gpu:1"), ["QOS part: time limit at most 2 h"]),
    ],
)
def test_partition_s_qos_comes_first_unless_the_job_s_is_over_it(
    flags: str, options: tuple[str, ...], said: list[str]
) -> None:
    """The partition's QOS limits a job before the job's own; with OverPartQOS it is the other way round."""
    qos = f"normal|\nhigh|{flags}\npart|\n"
    assert problems(asked(*options, partition=OF_PARTITION, assoc_mgr=IN_BOTH + PART, qos=qos)) == said


def test_limit_of_a_job_comes_from_the_association_alone() -> None:
    """An account of 1 hour does not limit a user with 2 days of their own; slurmctld hands it down to the others."""
    own = LIMITS.replace(
        "MaxJobs= MaxSubmitJobs= MaxWallPJ=\n    MaxTRESPJ=\nClusterName=gw Account=proj1 UserName=alice",
        "MaxJobs= MaxSubmitJobs= MaxWallPJ=60\n    MaxTRESPJ=\nClusterName=gw Account=proj1 UserName=alice",
    )
    assert own != LIMITS
    assert problems(asked("--time=1-0", assoc_mgr=own)) == []


def test_a_group_limit_of_a_qos_replaces_that_of_the_account() -> None:
    """Of two group limits that are in use only the QOS' is waited for; the account's holds without that QOS."""
    both = LIMITS.replace("gres/gpu=6(2)", "gres/gpu=90(2)").replace("MaxTRESPJ=gres/gpu=3", "MaxTRESPJ=")
    both = both.replace("gres/gpu=5(2)", "gres/gpu=N(2)")
    assert waits(asked("--qos=high", "--time=30", "--gres=gpu:4", assoc_mgr=both)) == []
    assert waits(asked("--gres=gpu:4", assoc_mgr=both)) == ["account proj1: 2 GPUs left (limit 8 GPUs)"]


def test_a_limit_of_a_node_counts_whole_shares() -> None:
    """5 CPUs on 2 nodes are 2 for each, as slurmctld divides; 6 are 3."""
    by_node = LIMITS.replace("MaxTRESPN=\n    Priority", "MaxTRESPN=cpu=2\n    Priority").replace("gres/gpu=5(2)", "")
    words = ("--qos=high", "--time=30", "--gres=gpu:1", "--nodes=2")
    assert problems(asked(*words, "--ntasks=5", assoc_mgr=by_node)) == []
    assert problems(asked(*words, "--ntasks=6", assoc_mgr=by_node)) == ["QOS high: at most 2 CPUs for a node"]


def test_submitted_jobs_are_counted_where_the_first_limit_is() -> None:
    """A QOS that lets a user submit 9 jobs replaces the association's limit of 1, which is reached."""
    full = LIMITS.replace("MaxJobs= MaxSubmitJobs= MaxWallPJ=2880", "MaxJobs= MaxSubmitJobs=1(1) MaxWallPJ=2880")
    assert problems(asked("--qos=high", "--time=30", assoc_mgr=full)) == []
    assert problems(asked("--time=30", assoc_mgr=full)) == [
        "user alice in account proj1: the limit on submitted jobs (1) is reached"
    ]
    both = full.replace("MaxSubmitJobsPU=9(1)", "MaxSubmitJobsPU=1(1)")
    assert problems(asked("--qos=high", "--time=30", assoc_mgr=both)) == [
        "QOS high: you have reached the limit on submitted jobs (1)"
    ]


def test_limits_that_are_not_enforced_are_no_reason() -> None:
    """Without AccountingStorageEnforce Slurm accepts jobs above the limits of QOS and associations; so do plans."""
    assert problems(asked("--qos=high", "--gres=gpu:4", config="ClusterName = gw\n")) == []


def test_what_is_in_use_is_waited_for() -> None:
    """proj1 has 2 of 8 GPUs left: a job of 2 starts now, one of 4 waits and is still valid."""
    assert waits(asked()) == []
    four = asked("--gres=gpu:4")
    assert problems(four) == []
    assert waits(four) == ["account proj1: 2 GPUs left (limit 8 GPUs)"]


def test_what_could_not_be_asked_is_a_note_and_no_reason() -> None:
    """Without slurmdbd and without the association manager partitions alone are checked."""
    found = asked("--qos=high", assoc=None, assoc_mgr=None)
    assert problems(found) == []
    assert [note.split(":")[0] for note in found.site.notes] == ["cannot read the limits", "cannot read your accounts"]


def test_accounts_in_a_circle_end() -> None:
    """An account that is its own parent, which no slurmdbd keeps, ends after a bounded number of steps."""
    circle = LIMITS.replace("ParentAccount=root(1)", "ParentAccount=proj1(3)")
    assert problems(asked("--ntasks=64", assoc_mgr=circle, config=CONFIG))[0].startswith("account proj1: at most 40")
