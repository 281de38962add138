"""Policies as text: one per line, its probable mistakes, one decision step by step, a replay on a job history."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Final

from gpuwaste.advice.policy.policies_types import ExplainDocument, PolicyDecision, PolicyReplayDocument, PolicyReplayRow
from gpuwaste.advice.policy.policy_file import (
    ALWAYS,
    DAYS,
    EVERY_DAY,
    FIRST_DAY,
    LAST_DAY,
    Patterns,
    Policy,
    PolicyExemption,
    When,
)
from gpuwaste.advice.policy.policy_set import PolicySet
from gpuwaste.core.text import harmless
from gpuwaste.core.units import say_hours, say_percent
from gpuwaste.jobs.verdict import TOLD
from gpuwaste.show.layout import Look, bullet, facts
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, percent, uncut

_LEFT: Final = frozenset({0, 1, 2})
_HEADERS: Final = ("POLICY", "TARGET", "WOULD", "JOBS", "SHOWN", "RIGHT", "WRONG", "OPEN", "PREC", "GPU-H", "USERS")


def explain_text(document: ExplainDocument, look: Look) -> str:
    """Render a policy-explain document."""
    lines: list[str] = []
    for decision in document.decisions:
        lines += [*_decision(decision, look), ""]
    lines += [line for note in document.notes for line in bullet(harmless(note))]
    return "\n".join(lines) + "\n"


def replay_text(document: PolicyReplayDocument, look: Look) -> str:
    """Render a policy-replay document."""
    lines = look.title("Replay of these policies")
    lines += facts(
        [
            ("History", uncut(document.source)),
            ("From", local_time(document.start, look.zone)),
            ("To", local_time(document.end, look.zone)),
            ("Submissions", str(document.submissions)),
            ("By a model", str(document.by_model)),
            ("By history", str(document.by_history)),
        ]
    )
    rows = [_row(row) for row in document.rows]
    lines += look.heading("Would-be warnings and rejects, and how the jobs ended")
    lines += look.table(_HEADERS, rows, _LEFT) if rows else ["  none"]
    if document.held:
        lines += look.heading("Warnings and rejects that were held back, by rule")
        held = sorted(document.held.items(), key=lambda item: -item[1])
        lines += [f"  {fit(name, 12):<12} {count}" for name, count in held]
    lines += look.heading("Notes")
    lines += [line for note in document.notes for line in bullet(harmless(note))]
    return "\n".join(lines) + "\n"


def _decision(decision: PolicyDecision, look: Look) -> list[str]:
    request, outcome = decision.request, decision.outcome
    lines = look.title(f"{fit(request.name or 'job', 40)} of {fit(request.user, 24)}: decision at sbatch")
    file = f" ({uncut(decision.file.rpartition('/')[2])})" if decision.file else " (built in)"
    lines.append(f"  policy {outcome.policy}{file}, mode {outcome.mode}")
    lines += look.heading("Steps")
    for step in outcome.steps:
        lines += bullet(f"{step.rule}: {harmless(step.text)} ({step.action})")
    held = f", would be {outcome.would_be}, held back by {outcome.held}" if outcome.held else ""
    lines += look.heading("Decision")
    lines.append(f"  {outcome.action}{held}")
    if outcome.time_min_s is not None:
        lines.append(f"  time_min {outcome.time_min_s // 60} min")
    shown = outcome.action in TOLD
    if outcome.lines:
        lines += look.heading("The user sees" if shown else "The user sees nothing; it would be")
        lines += [f"  {harmless(line)}" for line in outcome.lines]
    return lines


def _row(row: PolicyReplayRow) -> Sequence[str]:
    judged = row.right + row.wrong
    return (
        fit(row.policy, 12),
        row.target,
        row.would_be,
        str(row.jobs),
        str(row.said),
        str(row.right),
        str(row.wrong),
        str(row.unknown),
        percent(row.right / judged) if judged else UNKNOWN,
        say_hours(row.gpu_hours),
        str(row.users),
    )


def one_line(policy: Policy) -> str:
    """Return a policy as one line."""
    parts = [_when(policy.when), "; ".join(_targets(policy)) or "no advice: it has no targets"]
    if policy.mode == "reject":
        parts += [f"{policy.budget.rejects_per_user_per_day} rejects per user and day", _override(policy)]
        parts.append(f"{say_percent(policy.sample.pass_ratio.value)} pass at random")
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
