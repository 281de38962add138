"""Decisions of policies as text: one step by step, and what policies would have done on a job history."""

from collections.abc import Sequence
from typing import Final

from gpuwaste.advice.policy.policies_types import ExplainDocument, PolicyDecision, PolicyReplayDocument, PolicyReplayRow
from gpuwaste.core.text import harmless
from gpuwaste.core.units import say_hours
from gpuwaste.jobs.verdict import TOLD
from gpuwaste.show.cells import UNKNOWN, fit, local_time, percent, uncut
from gpuwaste.show.layout import Look, bullet, facts

_LEFT: Final = frozenset({0, 1, 2})
_HEADERS: Final = ("POLICY", "TARGET", "WOULD", "JOBS", "SAID", "RIGHT", "WRONG", "OPEN", "PREC", "GPU-H", "USERS")


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
    request = decision.request
    lines = look.title(f"{fit(request.name or 'job', 40)} of {fit(request.user, 24)}: decision at sbatch")
    file = f" ({uncut(decision.file.rpartition('/')[2])})" if decision.file else " (built in)"
    lines.append(f"  policy {decision.policy}{file}, mode {decision.mode}")
    lines += look.heading("Steps")
    for step in decision.steps:
        lines += bullet(f"{step.rule}: {harmless(step.text)} ({step.action})")
    held = f", would be {decision.would_be}, held back by {decision.held}" if decision.held else ""
    lines += look.heading("Decision")
    lines.append(f"  {decision.action}{held}")
    if decision.time_min_s is not None:
        lines.append(f"  time_min {decision.time_min_s // 60} min")
    shown = decision.action in TOLD
    if decision.lines:
        lines += look.heading("The user sees" if shown else "The user sees nothing; it would be")
        lines += [f"  {harmless(line)}" for line in decision.lines]
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
