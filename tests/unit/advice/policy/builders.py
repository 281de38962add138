"""Submissions, policies and a day's spending, as the tests of policies make them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from gpuwaste.advice.policy.policy_case import Expectation, PolicyOutcome, Spent, SubmissionFacts, Suggestion
from gpuwaste.advice.policy.policy_loading import built_in, policy_from_toml
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.slurm.submit.job_request import JobRequest

NOON = datetime(2026, 11, 18, 12)  # noqa: DTZ001 a Wednesday, in the site's own time
REQUEST = JobRequest(
    "alice", 1_800_000_000, account="physics", partition="gpu", qos="normal", name="train", time_limit_s=36000, gpus=4
)
FAILS = Expectation("failure", "site model", 9000, p=0.97, level="reject", why=("6 of your last 8 jobs failed",))
GPUS = Expectation(
    "gpus_needed", "history", 14, quantiles={"0.5": 1.0}, why=("your last 14 jobs named train used 1 of 4 GPUs",)
)
FEWER = Suggestion("gpus", "#SBATCH --gres=gpu:1", "your last such job used 1 of 4 GPUs", 3.0)
REJECTING = """
[policy]
name = "strict"
mode = "reject"
[targets.failure]
warn = 0.6
reject = 0.9
[targets.gpus]
warn = 0.75
[sample]
pass_ratio = 0
"""
BAD = SubmissionFacts(REQUEST, local_time=NOON, script="same", expected=(FAILS,))
WASTES = SubmissionFacts(REQUEST, local_time=NOON, expected=(GPUS,), suggestions=(FEWER,))


@dataclass
class Day:
    """What each user has had today, and what is known of policies."""

    had: dict[tuple[str, str], int] = field(default_factory=dict)
    known: Mapping[str, tuple[float, int]] = field(default_factory=dict)

    def spent(self, kind: Spent, user: str) -> int:
        return self.had.get((kind, user), 0)

    def precision(self, policy: str) -> tuple[float, int] | None:
        return self.known.get(policy)


def policies(*texts: str) -> PolicySet:
    """Return policies in this order, the built-in one last."""
    read = [policy_from_toml(text.encode(), f"{place:02}.toml") for place, text in enumerate(texts)]
    return PolicySet((*read, built_in()), "hash")


def no_chance() -> float:
    """Return a draw that lets nothing pass at random."""
    return 1.0


def decide(
    facts: SubmissionFacts, *texts: str, day: Day | None = None, chance: Callable[[], float] = no_chance, **changed: Any
) -> PolicyOutcome:
    """Return the decision of policies on facts with some fields changed."""
    asked = {name: changed.pop(name) for name in ("comment", "whole_node") if name in changed}
    facts = replace(facts, request=replace(facts.request, **asked))
    return policies(*texts).decide(replace(facts, **changed), day or Day(), chance)


def asking(**changed: Any) -> JobRequest:
    """Return the request with some fields changed."""
    return replace(REQUEST, **changed)
