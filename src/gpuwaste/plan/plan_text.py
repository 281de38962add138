"""Text of `gpuwaste plan`: a line for each candidate, the choice, and which cannot be submitted and why."""

import shlex
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Final

from gpuwaste.core.fields import Interval
from gpuwaste.core.text import harmless
from gpuwaste.core.units import HOUR_S, GpuTimeUnit, instant_words, say_duration
from gpuwaste.jobs.program_estimate import program_lines
from gpuwaste.plan.plan_document import PlanCandidate, PlanDocument
from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, fit, percent

_SLURM: Final = "SLURM'S START"
_INTERVAL: Final = "80 % INTERVAL"
_GOALS: Final = {"fastest": "ends first", "cheapest": "costs least", "safest": "has the lowest risk"}
_ANY_RISK: Final = "the highest of the probabilities of failure, timeout and out of memory"
_RISKS: Final = {"failure": "fails", "timeout": "reaches the time limit", "out of memory": "runs out of memory"}


def plan_text(document: PlanDocument, look: Look) -> str:
    """Render a plan."""
    lines = look.title(f"{fit(document.name or 'job', 40)}: plan")
    pairs: list[tuple[str, str]] = [("Goal", document.goal)]
    if document.deadline is not None:
        pairs.append(("Deadline", clock(document.deadline, document.at, look.zone)))
    lines += look.facts(pairs)
    valid = [one for one in document.candidates if one.status in {"valid", "unchecked"}]
    lines += _chosen(document, look)
    lines += _submittable(valid, document.at, look)
    if told := [(f"{one.number}", one.program) for one in valid if one.program is not None]:
        lines += [*look.heading("The program"), *program_lines(told, look.prose)]
    advice = [one for one in document.candidates if one.status == "advice"]
    if advice:
        lines += look.heading("Advice")
        lines += [line for one in advice for line in look.bullet(f"{harmless(one.title)}: {harmless(one.text)}")]
    if invalid := [one for one in document.candidates if one.status == "invalid"]:
        lines += look.heading("What you cannot submit")
        reasons = [f"{_named(one)}: {'; '.join(map(harmless, one.reasons))}" for one in invalid]
        lines += [line for reason in reasons for line in look.bullet(reason)]
    if document.notes:
        lines += look.heading("Notes")
        lines += [line for note in document.notes for line in look.bullet(harmless(note))]
    return "\n".join(lines) + "\n"


def clock(at: int | None, now: int, zone: tzinfo | None) -> str:
    """Return an instant as instant_words does, a dash where it is unknown."""
    if at is None:
        return UNKNOWN
    try:
        then, today = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone)
    except (ValueError, OverflowError, OSError):
        return UNKNOWN
    return instant_words(then, today)


def _submittable(valid: Sequence[PlanCandidate], now: int, look: Look) -> list[str]:
    """Return the table of the candidates, what its columns mean, and the notes on each candidate."""
    lines = look.heading("What you can submit")
    if not valid:
        return [*lines, "  no candidate can be submitted"]
    table = _table(valid, now, look)
    lines += table
    if look.header:
        lines += [line for words in _legend(table[0], valid) for line in look.bullet(words)]
    return lines + [line for one in valid for line in _about(one, look)]


def _table(valid: Sequence[PlanCandidate], now: int, look: Look) -> list[str]:
    unit = GpuTimeUnit.of(None if one.gpu_hours is None else one.gpu_hours * HOUR_S for one in valid)
    amounts = [UNKNOWN if one.gpu_hours is None else unit.number(one.gpu_hours * HOUR_S) for one in valid]
    starts = [clock(one.start.p50 if one.start else None, now, look.zone) for one in valid]
    return look.fitted(
        [
            Column("#", [str(one.number) for one in valid]),
            Column("START", starts),
            Column(_INTERVAL, [_interval(one.start, now, look.zone) for one in valid], rank=3),
            Column(_SLURM, [clock(one.slurm_start, now, look.zone) for one in valid], rank=4),
            Column("END", [clock(one.expected_end, now, look.zone) for one in valid]),
            Column(unit.name.upper(), amounts, rank=2),
            Column("RISK", [UNKNOWN if one.risk is None else percent(one.risk) for one in valid], rank=1),
            Column("REQUEST", [one.title for one in valid]),
        ]
    )


def _legend(head: str, valid: Sequence[PlanCandidate]) -> list[str]:
    """Return what the columns of the table mean, where one that is shown has a value."""
    found = []
    if _INTERVAL in head and any(one.start for one in valid):
        found.append(f"{_INTERVAL}: the job starts within it in 8 of 10 cases")
    if _SLURM in head and any(one.slurm_start for one in valid):
        found.append(f"{_SLURM}: from sbatch --test-only, which assumes that all running jobs use their full limit")
    risks = [one.risk_of for one in valid if one.risk is not None]
    if "RISK" in head and risks:
        named = {_RISKS[name] for name in risks if name in _RISKS}
        what = f"probability that the job {named.pop()}" if len(named) == 1 else _ANY_RISK
        found.append(f"RISK: {what}")
    return found


def _interval(found: Interval | None, now: int, zone: tzinfo | None) -> str:
    return UNKNOWN if found is None else f"{clock(found.p10, now, zone)} to {clock(found.p90, now, zone)}"


def _about(one: PlanCandidate, look: Look) -> list[str]:
    """Return the notes on a candidate below the table; none for one that its options describe completely."""
    parts = [harmless(one.text)] if one.text else []
    parts += [f"needs {harmless(one.needs)}"] if one.needs else []
    parts += [f"must wait for a limit: {harmless(text)}" for text in one.waits]
    if one.status == "unchecked":
        parts += [f"not checked: {harmless(text)}" for text in one.reasons]
    return look.bullet(f"{_named(one)}: {'; '.join(parts)}") if parts else []


def _chosen(document: PlanDocument, look: Look) -> list[str]:
    found = next((one for one in document.candidates if one.number == document.chosen), None)
    if found is None:
        return []
    lines = look.heading(f"{document.goal.capitalize()}: {found.number}, {fit(found.title, 40)}")
    words = ["sbatch", *found.options, document.script or "--wrap=..."]
    why = f"{_GOALS[document.goal]} of the candidates that can be submitted now"
    if document.meets_deadline is False:
        why = "no candidate is sure to end by the deadline; this one ends first"
    if found.time_limit_s:
        why += f"; time limit {say_duration(found.time_limit_s)}"
    return [*lines, *look.bullet(why), f"        {harmless(shlex.join(words))}"]


def _named(one: PlanCandidate) -> str:
    options = f" ({harmless(shlex.join(one.options))})" if one.options else ""
    return f"{one.number}, {fit(one.title, 40)}{options}"
