"""Text of `gpuwaste plan`: a line for each candidate, the choice, and which cannot be submitted and why."""

import shlex
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Final

from gpuwaste.core.fields import Interval
from gpuwaste.core.text import harmless
from gpuwaste.core.units import format_duration, instant_words, say_number
from gpuwaste.jobs.program_estimate import program_lines
from gpuwaste.plan.plan_document import PlanCandidate, PlanDocument
from gpuwaste.show.layout import COLUMNS, Look, bullet, facts
from gpuwaste.show.terminal_cells import UNKNOWN, fit, percent

_HEADERS: Final = ("#", "REQUEST", "START", "80 % INTERVAL", "SLURM SAYS", "END", "GPU-H", "RISK")
_GOALS: Final = {"fastest": "ends first", "cheapest": "costs least", "safest": "has the lowest risk"}
_TITLES: Final = (8, 20)  # columns of a title, at least and at most


def plan_text(document: PlanDocument, look: Look) -> str:
    """Render a plan."""
    lines = look.title(f"{fit(document.name or 'job', 40)}: plan")
    pairs: list[tuple[str, str]] = [("Goal", document.goal)]
    if document.deadline is not None:
        pairs.append(("Deadline", clock(document.deadline, document.at, look.zone)))
    lines += facts(pairs)
    valid = [one for one in document.candidates if one.status in {"valid", "unchecked"}]
    lines += look.heading("What you can submit")
    lines += look.table(_HEADERS, _rows(valid, document.at, look.zone), frozenset({1}))
    for one in valid:
        lines += _about(one)
    if told := [(f"{one.number}", one.program) for one in valid if one.program is not None]:
        lines += [*look.heading("The program"), *program_lines(told)]
    lines += _chosen(document, look)
    advice = [one for one in document.candidates if one.status == "advice"]
    if advice:
        lines += look.heading("Advice")
        lines += [line for one in advice for line in bullet(f"{harmless(one.title)}: {harmless(one.text)}")]
    invalid = [one for one in document.candidates if one.status == "invalid"]
    if invalid:
        lines += look.heading("What you cannot submit")
        lines += [line for one in invalid for line in bullet(f"{_named(one)}: {'; '.join(map(harmless, one.reasons))}")]
    if notes := _notes(document, valid):
        lines += look.heading("Notes")
        lines += [line for note in notes for line in bullet(harmless(note))]
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


def _rows(valid: Sequence[PlanCandidate], now: int, zone: tzinfo | None) -> list[list[str]]:
    """Return the rows; titles get the width that the other columns leave."""
    rows = [_row(one, now, zone) for one in valid]
    cells = [_HEADERS, *rows]
    taken = sum(max(len(row[place]) for row in cells) + 1 for place in range(len(_HEADERS)) if place != 1)
    least, most = _TITLES
    columns = min(max(COLUMNS - 2 - taken, least), most)
    return [[row[0], fit(row[1], columns), *row[2:]] for row in rows]


def _row(one: PlanCandidate, now: int, zone: tzinfo | None) -> list[str]:
    return [
        f"{one.number}",
        one.title,
        clock(one.start.p50 if one.start else None, now, zone),
        _interval(one.start, now, zone),
        clock(one.slurm_start, now, zone),
        clock(one.expected_end, now, zone),
        UNKNOWN if one.gpu_hours is None else say_number(one.gpu_hours, 1),
        UNKNOWN if one.risk is None else percent(one.risk),
    ]


def _interval(found: Interval | None, now: int, zone: tzinfo | None) -> str:
    return UNKNOWN if found is None else f"{clock(found.p10, now, zone)} to {clock(found.p90, now, zone)}"


def _about(one: PlanCandidate) -> list[str]:
    """Return the notes on a candidate below the table; none for one that its options describe completely."""
    parts = [harmless(one.text)] if one.text else []
    parts += [f"needs {harmless(one.needs)}"] if one.needs else []
    parts += [f"waits for limits in use: {harmless(text)}" for text in one.waits]
    if one.status == "unchecked":
        parts += [f"not checked: {harmless(text)}" for text in one.reasons]
    return bullet(f"{_named(one)}: {'; '.join(parts)}") if parts else []


def _chosen(document: PlanDocument, look: Look) -> list[str]:
    found = next((one for one in document.candidates if one.number == document.chosen), None)
    if found is None:
        return []
    lines = look.heading(f"{document.goal.capitalize()}: {found.number}, {fit(found.title, 40)}")
    words = ["sbatch", *found.options, document.script or "--wrap=..."]
    why = f"{_GOALS[document.goal]} of those that can be submitted now"
    if document.meets_deadline is False:
        why = "no candidate is sure to end by the deadline; this one ends first"
    if found.time_limit_s:
        why += f"; time limit {format_duration(found.time_limit_s)}"
    return [*lines, *bullet(why), f"        {harmless(shlex.join(words))}"]


def _named(one: PlanCandidate) -> str:
    options = f" ({harmless(shlex.join(one.options))})" if one.options else ""
    return f"{one.number}, {fit(one.title, 40)}{options}"


def _notes(document: PlanDocument, valid: Sequence[PlanCandidate]) -> list[str]:
    notes = list(document.notes)
    if any(one.slurm_start for one in valid):
        notes.append(
            "SLURM SAYS is the start by sbatch --test-only: assuming that every running job uses its full limit"
        )
    if not valid:
        notes.append("no candidate can be submitted")
    return notes
