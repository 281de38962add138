"""Policies as text: one per line, its probable mistakes, one decision step by step, a replay on a job history."""

from collections.abc import Iterator, Sequence
from dataclasses import fields

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
from gpuwaste.core.units import HOUR_S, GpuTimeUnit, say_duration, say_percent
from gpuwaste.jobs.verdict import TOLD
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import fit, local_time, percent, share, uncut


def explain_text(document: ExplainDocument, look: Look) -> str:
    """Render a policy-explain document."""
    lines: list[str] = []
    for decision in document.decisions:
        lines += [*_decision(decision, look), ""]
    lines += [line for note in document.notes for line in look.bullet(harmless(note))]
    return "\n".join(lines) + "\n"


def replay_text(document: PolicyReplayDocument, look: Look) -> str:
    """Render a policy-replay document."""
    lines = look.title("Replay of these policies")
    lines += look.facts(
        [
            ("History", uncut(document.source)),
            ("Submissions", f"{document.submissions:,}"),
            ("From", local_time(document.start, look.zone)),
            ("To", local_time(document.end, look.zone)),
            ("By a model", f"{document.by_model:,}"),
            ("By history", f"{document.by_history:,}"),
        ]
    )
    lines += look.heading("Would-be warnings and rejects, and how the jobs ended")
    lines += _rows(document.rows, look) if document.rows else ["  none"]
    if document.held:
        lines += look.heading("Warnings and rejects that were held back, by rule")
        held = sorted(document.held.items(), key=lambda item: -item[1])
        lines += [f"  {fit(name, 12):<12} {count:>9,}" for name, count in held]
    lines += look.heading("Notes")
    lines += [line for note in document.notes for line in look.bullet(harmless(note))]
    return "\n".join(lines) + "\n"


def _decision(decision: PolicyDecision, look: Look) -> list[str]:
    request, outcome = decision.request, decision.outcome
    lines = look.title(f"{fit(request.name or 'job', 40)} of {fit(request.user, 24)}: decision at sbatch")
    file = f" ({uncut(decision.file.rpartition('/')[2])})" if decision.file else " (built in)"
    lines.append(f"  policy {outcome.policy}{file}, mode {outcome.mode}")
    lines += look.heading("Steps")
    for step in outcome.steps:
        lines += look.bullet(f"{step.rule}: {harmless(step.text)} ({step.action})")
    held = f", would be {outcome.would_be}, held back by {outcome.held}" if outcome.held else ""
    lines += look.heading("Decision")
    lines.append(f"  {outcome.action}{held}")
    if outcome.time_min_s is not None:
        lines.append(f"  time_min {say_duration(outcome.time_min_s)}")
    shown = outcome.action in TOLD
    if outcome.lines:
        lines += look.heading("The user sees" if shown else "The user sees nothing; it would be")
        lines += [f"  {harmless(line)}" for line in outcome.lines]
    return lines


def _rows(rows: Sequence[PolicyReplayRow], look: Look) -> list[str]:
    unit = GpuTimeUnit.of(row.gpu_hours * HOUR_S for row in rows)
    judged = [row.right + row.wrong for row in rows]
    return look.fitted(
        [
            Column("TARGET", [row.target for row in rows], left=True),
            Column("WOULD", [row.would_be for row in rows], left=True),
            Column("JOBS", [f"{row.jobs:,}" for row in rows]),
            Column("SHOWN", [f"{row.said:,}" for row in rows], rank=2),
            Column("RIGHT", [f"{row.right:,}" for row in rows]),
            Column("WRONG", [f"{row.wrong:,}" for row in rows]),
            Column("OPEN", [f"{row.unknown:,}" for row in rows], rank=3),
            Column("PRECISION", [percent(share(row.right, count)) for row, count in zip(rows, judged, strict=True)]),
            Column(unit.name.upper(), [unit.number(row.gpu_hours * HOUR_S) for row in rows], rank=1),
            Column("USERS", [f"{row.users:,}" for row in rows], rank=4),
            Column("POLICY", [row.policy for row in rows]),
        ]
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
    parts += ["prints smaller requests that past runs would have fitted"] if policy.right_size is not None else []
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
    return not policy.targets and not any((policy.time_min, policy.expected_start, policy.right_size))


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
