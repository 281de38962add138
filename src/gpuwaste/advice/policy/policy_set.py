"""PolicySet: the policies in force, in order; `decide` uses the first one that judges the submission.

A policy's table [when] defines whether it judges a submission: at load it is turned into only the tests it needs.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields

from gpuwaste.advice.policy.policy_case import PolicyCase, PolicyEffect, PolicyOutcome, Spending, SubmissionFacts
from gpuwaste.advice.policy.policy_file import (
    ALWAYS,
    EVERY_DAY,
    FIRST_DAY,
    GPUS,
    LAST_DAY,
    QUANTITIES,
    Patterns,
    Policy,
    When,
)
from gpuwaste.advice.policy.rules import judge
from gpuwaste.advice.policy.user_message import lines_of

_RISKS = ("failure", "timeout")  # a smaller request is advised only where these do not change
_NEEDS = {
    GPUS: ("gpu_underused", "gpus_needed", *_RISKS),
    **{name: (name, *_RISKS) for name in QUANTITIES},
}
Test = Callable[[SubmissionFacts], bool]


class PolicySet:
    """Policies in the order in which they are tried; the last one judges everything. Threads may share one."""

    def __init__(self, policies: Sequence[Policy], digest: str) -> None:
        self.policies = tuple(policies)
        self.hash = digest
        self._tests: tuple[tuple[Policy, tuple[Test, ...]], ...] = tuple((p, tests_of(p.when)) for p in policies)
        reached = next((i for i, (_, tests) in enumerate(self._tests) if not tests), len(policies))
        self.in_force: tuple[Policy, ...] = self.policies[: reached + 1]
        self.needs = frozenset[str]().union(*(needs_of(policy) for policy in self.in_force))
        self.uses_groups = any(policy.when.groups or policy.exempt.groups for policy in self.in_force)

    def select(self, facts: SubmissionFacts) -> Policy:
        """Return the policy that judges a submission; predictions need not be known yet."""
        for policy, tests in self._tests:
            for test in tests:
                if not test(facts):
                    break
            else:
                return policy
        return self.policies[-1]

    def decide(self, facts: SubmissionFacts, spending: Spending, chance: Callable[[], float]) -> PolicyOutcome:
        """Return the decision on a submission; `chance` draws a number from 0 up to 1. Stores nothing."""
        return self.decide_by(self.select(facts), facts, spending, chance)

    @staticmethod
    def decide_by(
        policy: Policy, facts: SubmissionFacts, spending: Spending, chance: Callable[[], float]
    ) -> PolicyOutcome:
        """Return the same by a policy selected before: the predictions do not change the selection."""
        case = PolicyCase(policy, facts, spending, chance)
        judge(case)
        return PolicyOutcome(
            **{part.name: getattr(case, part.name) for part in fields(PolicyEffect)},
            policy=case.policy.name,
            mode=case.policy.mode,
            lines=lines_of(case),
            reasons=tuple(dict.fromkeys(why for trigger in case.triggers for why in trigger.why)),
            triggers={trigger.target: trigger.value for trigger in case.triggers},
            steps=tuple(case.steps),
        )


def needs_of(policy: Policy) -> frozenset[str]:
    """Return the models' targets that a policy's decision is based on."""
    if policy.mode == "off":
        return frozenset()
    found = {name for target in policy.targets for name in _NEEDS.get(target, (target,))}
    return frozenset(found | {"walltime"} if policy.time_min is not None else found)


def tests_of(when: When) -> tuple[Test, ...]:
    """Return the conditions that must hold, the cheapest first; none where the policy judges everything."""
    tests: list[Test] = []
    if when.min_gpus:
        tests.append(lambda facts: facts.request.gpus >= when.min_gpus)
    if when.min_nodes > 1:
        tests.append(lambda facts: (facts.request.nodes or 1) >= when.min_nodes)
    if (when.from_, when.until) != (FIRST_DAY, LAST_DAY):
        tests.append(lambda facts: when.from_ <= facts.local_time.date() <= when.until)
    if when.weekdays != EVERY_DAY:
        tests.append(lambda facts: facts.local_time.weekday() in when.weekdays.numbers)
    if when.hours != ALWAYS:
        tests.append(lambda facts: when.hours.hold(facts.local_time))
    if when.partitions:
        tests.append(lambda facts: in_partitions(when.partitions, facts.request.partition))
    for patterns, name in ((when.qos, "qos"), (when.accounts, "account"), (when.users, "user")):
        if patterns:
            tests.append(_request_matches(patterns, name))
    if when.groups:
        tests.append(lambda facts: when.groups.match_any(facts.groups))
    return tuple(tests)


def in_partitions(patterns: Patterns, asked: str) -> bool:
    """Return whether one of the requested, comma-separated partitions matches."""
    return patterns.match(asked) if "," not in asked else patterns.match_any(asked.split(","))


def _request_matches(patterns: Patterns, name: str) -> Test:
    return lambda facts: patterns.match(getattr(facts.request, name))
