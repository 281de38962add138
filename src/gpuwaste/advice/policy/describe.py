"""A policy in one line, and its probable mistakes: for `gpuwaste policy check`."""

from collections.abc import Iterator
from dataclasses import fields

from gpuwaste.advice.policy.declarations import FIRST_DAY, LAST_DAY, Policy, PolicyExemption, When
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.advice.policy.values import ALWAYS, DAYS, EVERY_DAY, Patterns


def one_line(policy: Policy) -> str:
    """Return what a policy does."""
    parts = [_when(policy.when), "; ".join(_targets(policy)) or "no advice: it has no targets"]
    if policy.mode == "reject":
        parts += [f"{policy.budget.rejects_per_user_per_day} rejects per user and day", _override(policy)]
        parts.append(f"{policy.sample.pass_ratio.value:.0%} pass at random")
    if policy.floor.precision.value and policy.mode not in {"off", "shadow"}:
        parts.append(f"floor {policy.floor.precision} from {policy.floor.min_verdicts} verdicts on")
    exempt = ", ".join(_patterns(policy.exempt))
    parts += [f"exempt: {exempt}"] if exempt else []
    parts += [f"time_min from {policy.time_min.ratio} of the limit on"] if policy.time_min is not None else []
    parts += ["prints the expected start"] if policy.expected_start is not None else []
    return f"{policy.name} ({policy.mode}): {'; '.join(parts)}"


def remarks(policies: PolicySet) -> Iterator[str]:
    """Yield probable mistakes."""
    for policy in policies.policies:
        if policy not in policies.in_force and policy.file:
            yield f"{policy.file}: is never used: {policies.in_force[-1].name} before it matches every submission"
        elif policy.mode in {"annotate", "warn", "reject"} and _advises_nothing(policy):
            yield f"{policy.file}: its mode is {policy.mode}, but it has no [targets.*]: it gives no advice"
        elif policy.mode == "reject" and not any(rule.reject for rule in policy.targets.values()):
            yield f"{policy.file}: its mode is reject, but no target has a reject: it only warns"


def _advises_nothing(policy: Policy) -> bool:
    return not policy.targets and policy.time_min is None and policy.expected_start is None


def _when(when: When) -> str:
    parts = list(_patterns(when))
    if when.hours != ALWAYS:
        parts.append(str(when.hours))
    if when.weekdays != EVERY_DAY:
        parts.append(",".join(DAYS[number] for number in sorted(when.weekdays.numbers)))
    if when.from_ != FIRST_DAY:
        parts.append(f"from {when.from_}")
    if when.until != LAST_DAY:
        parts.append(f"until {when.until}")
    parts += [
        f"{name} {value} or more" for name, value in (("GPUs", when.min_gpus), ("nodes", when.min_nodes)) if value
    ]
    return f"where {', '.join(parts)}" if parts else "everything"


def _patterns(table: When | PolicyExemption) -> Iterator[str]:
    for declared in fields(table):
        value = getattr(table, declared.name)
        if isinstance(value, Patterns) and value:
            yield f"{declared.name} {'|'.join(value.texts[:3])}{'|...' if len(value.texts) > 3 else ''}"  # noqa: PLR2004 a line is short


def _targets(policy: Policy) -> Iterator[str]:
    for name, rule in policy.targets.items():
        points = [f"{point} {value}" for point, value in (("warn", rule.warn), ("reject", rule.reject)) if value]
        yield f"{name} {', '.join(points)}"


def _override(policy: Policy) -> str:
    if not policy.override.allowed or not policy.override.per_user_per_day:
        return "no override"
    return f"{policy.override.per_user_per_day} overrides"
