"""Rules that `sbatch --test-only` does not check: partitions, QOS and associations, each with what is left."""

import pytest
from tests.unit.plan.facts import CONFIG, LIMITS, PARTITIONS, UID, Answers, site, submission

from gpuwaste.plan.asked import Asked
from gpuwaste.plan.builder import _asked
from gpuwaste.plan.limits import problems, waits
from gpuwaste.plan.site import read_site


def asked(*options: str, **texts: str | None) -> Asked:
    """Return what alice asks for at the site."""
    ((request, given),) = submission(*options).read()
    return _asked(request, site(**texts), given)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), []),
        (
            ("--time=4-0",),
            ["partition gpu: time limit at most 3 days", "user alice in account proj1: time limit at most 48 h"],
        ),
        (("--partition=staff",), ["partition staff is not open to account proj1"]),
        (("--qos=high", "--time=30"), []),
        (("--qos=high", "--time=2:00:00"), ["QOS high: time limit at most 60 min"]),
        (("--qos=high", "--time=30", "--gres=gpu:4"), ["QOS high: at most 3 GPUs for a job"]),
        (("--qos=high", "--time=30", "--mem=128G"), ["QOS high: at most 64.0 GiB of memory for all its jobs"]),
        (("--qos=other",), ["QOS other is not open to you in account proj1"]),
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


def test_limits_that_are_not_enforced_are_no_reason() -> None:
    """Without AccountingStorageEnforce Slurm accepts jobs above the limits of QOS and associations; so do plans."""
    assert problems(asked("--qos=high", "--gres=gpu:4", config="ClusterName = gw\n")) == []


def test_what_is_in_use_is_waited_for() -> None:
    """proj1 has 2 of 8 GPUs left: a job of 2 starts now, one of 4 waits and is still valid."""
    assert waits(asked()) == []
    four = asked("--gres=gpu:4")
    assert problems(four) == []
    assert waits(four) == ["account proj1: 2 GPUs of 8 GPUs left"]


def test_what_could_not_be_asked_is_a_note_and_no_reason() -> None:
    """Without slurmdbd and without the association manager partitions alone are checked."""
    found = asked("--qos=high", assoc=None, assoc_mgr=None)
    assert problems(found) == []
    assert [note.split(":")[0] for note in found.site.notes] == ["cannot read the limits", "cannot read your accounts"]


def test_accounts_in_a_circle_end() -> None:
    """An account that is its own parent, which no slurmdbd keeps, ends after a bounded number of steps."""
    circle = LIMITS.replace("ParentAccount=root(1)", "ParentAccount=proj1(3)")
    assert problems(asked("--ntasks=64", assoc_mgr=circle, config=CONFIG))[0].startswith("account proj1: at most 40")
