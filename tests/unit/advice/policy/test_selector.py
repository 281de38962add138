"""Which policy judges: partitions, QOS, accounts, users, groups, hours, days, dates, sizes."""

from datetime import datetime
from typing import Any

import pytest
from tests.unit.advice.policy.builders import BAD, asking, decide

from gpuwaste.slurm.submit.job_desc import read_job_desc

_MATCHES: list[tuple[str, dict[str, Any], bool]] = [
    ('partitions = ["gpu*"]', {"partition": "gpu-long"}, True),
    ('partitions = ["gpu"]', {"partition": "gpu-long"}, False),
    ('partitions = ["gpu"]', {"partition": "cpu,gpu"}, True),
    ('partitions = ["gpu"]', {"partition": ""}, False),
    ('partitions = ["*"]', {"partition": ""}, True),
    ('qos = ["high", "n?rmal"]', {}, True),
    ('accounts = ["[a-c]*"]', {}, False),
    ('accounts = ["phys*"]\nusers = ["bob"]', {}, False),
    ('accounts = ["phys*"]\nusers = ["bob", "alice"]', {}, True),
    ('users = ["Alice"]', {}, False),
    ('users = ["alice\\n"]', {}, False),
    ("min_gpus = 4", {}, True),
    ("min_gpus = 5", {}, False),
    ("min_nodes = 1", {"nodes": None}, True),
    ("min_nodes = 2", {"nodes": None}, False),
    ("min_nodes = 2", {"nodes": 2}, True),
]


@pytest.mark.parametrize(("when", "changed", "matches"), _MATCHES)
def test_all_that_is_said_has_to_hold(when: str, changed: dict[str, Any], matches: bool) -> None:
    """Shell patterns on the whole text, one of several partitions, upper and lower case told apart."""
    decision = decide(BAD, f'[policy]\nname = "own"\n[when]\n{when}\n', request=asking(**changed))
    assert (decision.policy == "own") is matches


@pytest.mark.parametrize("text", ["gres/gpu:1080ti:4", "gres:gpu:1g.10gb:4", "gres/gpu:3090=4", "gres/gpu:a100:4"])
def test_a_policy_sees_gpus_of_any_type(text: str) -> None:
    """min_gpus holds for a job as a submit plugin sends it, whatever its type of GPU begins with."""
    desc = read_job_desc({"user_id": 1, "min_nodes": 1, "min_cpus": 1, "tres_per_node": text, "partition": "gpu"})
    decision = decide(BAD, '[policy]\nname = "own"\n[when]\nmin_gpus = 4\n', request=desc.request("alice", 7))
    assert decision.policy == "own"


_TIMES = [
    ('hours = "08:00-18:00"', datetime(2026, 11, 18, 8), True),  # noqa: DTZ001 the site's own time, here and below
    ('hours = "08:00-18:00"', datetime(2026, 11, 18, 18), False),  # noqa: DTZ001
    ('hours = "22:00-06:00"', datetime(2026, 11, 18, 23, 59), True),  # noqa: DTZ001
    ('hours = "22:00-06:00"', datetime(2026, 11, 18, 5, 59), True),  # noqa: DTZ001
    ('hours = "22:00-06:00"', datetime(2026, 11, 18, 6), False),  # noqa: DTZ001
    ('hours = "00:00-24:00"', datetime(2026, 11, 18, 23, 59), True),  # noqa: DTZ001
    ('weekdays = ["wed"]', datetime(2026, 11, 18), True),  # noqa: DTZ001
    ('weekdays = ["mon", "sun"]', datetime(2026, 11, 18), False),  # noqa: DTZ001
    ("from = 2026-11-18", datetime(2026, 11, 18), True),  # noqa: DTZ001
    ("from = 2026-11-19", datetime(2026, 11, 18, 23), False),  # noqa: DTZ001
    ("until = 2026-11-18", datetime(2026, 11, 18, 23, 59), True),  # noqa: DTZ001
    ("until = 2026-11-17", datetime(2026, 11, 18), False),  # noqa: DTZ001
]


@pytest.mark.parametrize(("when", "at", "matches"), _TIMES)
def test_time_is_the_site_s(when: str, at: datetime, matches: bool) -> None:
    """Hours without their end, over midnight too; days; first and last dates with the whole day."""
    decision = decide(BAD, f'[policy]\nname = "own"\n[when]\n{when}\n', local_time=at)
    assert (decision.policy == "own") is matches


def test_one_of_the_user_s_groups_is_enough() -> None:
    """A group that matches, one that does not, none at all."""
    policy = '[policy]\nname = "own"\n[when]\ngroups = ["students*"]\n'
    assert decide(BAD, policy, groups=frozenset({"staff", "students26"})).policy == "own"
    assert decide(BAD, policy, groups=frozenset({"staff"})).policy == "default"
    assert decide(BAD, policy).policy == "default"
