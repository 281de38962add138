"""PolicySet: the policies in force, in order; `decide` asks the first one that judges the submission."""

from collections.abc import Callable, Sequence
from dataclasses import fields

from gpuwaste.advice.policy.case import PolicyCase
from gpuwaste.advice.policy.declarations import GPUS, QUANTITIES, Policy
from gpuwaste.advice.policy.facts import PolicyOutcome, PolicySaid, Spending, SubmissionFacts
from gpuwaste.advice.policy.rules import judge
from gpuwaste.advice.policy.selector import Test, tests_of
from gpuwaste.advice.policy.user_message import lines_of

_RISKS = ("failure", "timeout")  # a smaller request is advised only where these stay as they are
_NEEDS = {
    GPUS: ("gpu_underused", "gpus_needed", *_RISKS),
    **{name: (name, *_RISKS) for name in QUANTITIES},
}


class PolicySet:
    """Policies in the order in which they are asked; the last one judges everything. Threads may share one."""

    def __init__(self, policies: Sequence[Policy], digest: str) -> None:
        self.policies = tuple(policies)
        self.hash = digest
        self._tests: tuple[tuple[Policy, tuple[Test, ...]], ...] = tuple((p, tests_of(p.when)) for p in policies)
        reached = next((i for i, (_, tests) in enumerate(self._tests) if not tests), len(policies))
        self.in_force: tuple[Policy, ...] = self.policies[: reached + 1]
        self.needs = frozenset[str]().union(*(needs_of(policy) for policy in self.in_force))
        self.uses_groups = any(policy.when.groups or policy.exempt.groups for policy in self.in_force)

    def select(self, facts: SubmissionFacts) -> Policy:
        """Return the policy that judges a submission; what is expected of it need not be known yet."""
        for policy, tests in self._tests:
            for test in tests:
                if not test(facts):
                    break
            else:
                return policy
        return self.policies[-1]

    def decide(self, facts: SubmissionFacts, spending: Spending, chance: Callable[[], float]) -> PolicyOutcome:
        """Return what is said of a submission; `chance` draws a number from 0 up to 1. Writes nothing down."""
        return self.decide_by(self.select(facts), facts, spending, chance)

    @staticmethod
    def decide_by(
        policy: Policy, facts: SubmissionFacts, spending: Spending, chance: Callable[[], float]
    ) -> PolicyOutcome:
        """Return the same where the policy was selected before: what is expected of a job does not change it."""
        case = PolicyCase(policy, facts, spending, chance)
        judge(case)
        return PolicyOutcome(
            **{part.name: getattr(case, part.name) for part in fields(PolicySaid)},
            policy=case.policy.name,
            mode=case.policy.mode,
            lines=lines_of(case),
            reasons=tuple(dict.fromkeys(why for trigger in case.triggers for why in trigger.why)),
            triggers={trigger.target: trigger.value for trigger in case.triggers},
            steps=tuple(case.steps),
        )


def needs_of(policy: Policy) -> frozenset[str]:
    """Return the models' targets that a policy's decision rests on."""
    if policy.mode == "off":
        return frozenset()
    found = {name for target in policy.targets for name in _NEEDS.get(target, (target,))}
    return frozenset(found | {"walltime"} if policy.time_min is not None else found)
