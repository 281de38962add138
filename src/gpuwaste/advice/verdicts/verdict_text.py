"""Verdicts and their score as text: 80 columns, what each user saw and whether it was right."""

from typing import Final

from gpuwaste.advice.verdicts.verdict_score import Calibration, PolicyScore, ScoreDocument, WeekScore
from gpuwaste.advice.verdicts.verdict_types import VerdictRow, VerdictsDocument
from gpuwaste.show.layout import Look, bullet, said_lines
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, percent, state_code, uncut

_ROWS: Final = 40
_SCORE_HEADERS: Final = (
    "WEEK",
    "VERDICTS",
    "SAY",
    "WARN",
    "REJ",
    "SCORED",
    "PREC",
    "RECALL",
    "OPEN",
    "NOJOB",
    "POLICY",
)
_BARS: Final = 20


def verdicts_text(document: VerdictsDocument, look: Look) -> str:
    """Render verdicts, the newest first; for operators with the policy and its would-be decision."""
    rows = document.verdicts[:_ROWS]
    lines = look.title("Verdicts at submission") if look.header else []
    whole = bool(rows) and bool(rows[0].would_be)
    headers = ("TIME", "ACTION", *(("WOULD", "HELD", "POLICY") if whole else ()), "JOB", "ST", "RIGHT", "USER: NAME")
    lines += look.table(headers, [_row(row, look, whole=whole) for row in rows], frozenset(range(len(headers))))
    more = len(document.verdicts) - _ROWS
    lines += [f"  ... and {more} older ones (--parsable prints all)"] if more > 0 else []
    for row in rows if not whole else ():
        if row.lines:
            lines += ["", f"{local_time(row.at_utc_us // 1_000_000, look.zone)} {uncut(_jobs(row))}"]
            lines += said_lines(row.lines)
    return "\n".join(lines) + "\n"


def score_text(score: ScoreDocument, look: Look) -> str:
    """Render the score: a table by week and policy, false rejects and overrides, then the calibration."""
    lines = look.title(f"Score of verdicts since {local_time(score.since, look.zone)}") if look.header else []
    rows = [_score_row(row) for row in score.weeks]
    lines += look.table(_SCORE_HEADERS, rows, frozenset({0, len(_SCORE_HEADERS) - 1}))
    if any(row.floored for row in score.weeks):
        lines += bullet("(*) below its floor: in that week the policy fell back to shadow mode")
    for row in score.policies:
        lines += _policy_lines(row)
    lines += look.heading("Calibration: predicted probability and observed rate")
    for found in score.calibration:
        lines += _calibration_lines(found)
    return "\n".join(lines) + "\n"


def _row(row: VerdictRow, look: Look, *, whole: bool) -> tuple[str, ...]:
    came_true = row.hit if isinstance(row.hit, bool) else row.start_within
    right = UNKNOWN if came_true is None else "yes" if came_true else "no"
    states = ",".join(state_code(state) for state in row.states[:2]) if row.stands != "rejected" else ""
    held = (row.would_be, fit(row.held or UNKNOWN, 9), fit(row.policy, 12)) if whole else ()
    return (
        local_time(row.at_utc_us // 1_000_000, look.zone),
        row.action,
        *held,
        uncut(_jobs(row)),
        fit(states or row.stands, 8),
        right,
        fit(f"{row.user}: {row.name}", 24),
    )


def _jobs(row: VerdictRow) -> str:
    first, more = row.job_ids[:1], len(row.job_ids) - 1
    return (first[0] if first else UNKNOWN) + (f"+{more}" if more > 0 else "")


def _score_row(row: WeekScore) -> tuple[str, ...]:
    return (
        f"{row.week}{' *' if row.floored else ''}",
        *map(str, (row.n, row.would_say, row.warned, row.rejected, row.judged)),
        percent(row.precision),
        percent(row.recall),
        str(row.open),
        str(row.no_job),
        fit(row.policy, 16),
    )


def _policy_lines(row: PolicyScore) -> list[str]:
    name = fit(row.policy, 24)
    lines: list[str] = []
    if row.sampled:
        lines += bullet(
            f"{name}: of {row.sampled} would-be rejects that passed at random {row.sampled_judged} have ended, "
            f"{row.false_rejects} of them well: false rejects"
        )
    if row.starts:
        lines += bullet(
            f"{name}: of {row.starts} expected starts {row.starts_within} in their 80 % interval"
            f" ({percent(row.start_coverage)})"
        )
    if row.overrides:
        well = row.overrides_judged - row.overrides_hits
        lines += bullet(f"{name}: {row.overrides} overrides, {row.overrides_judged} have ended, {well} of them well")
    return lines


def _calibration_lines(found: Calibration) -> list[str]:
    lines = [f"  {fit(found.target, 24)}: {found.n} verdicts, error {percent(found.ece)}"]
    for row in found.bins:
        drawn = "|" * round(row.true * _BARS)
        span = f"{percent(row.from_):>4} to {percent(row.to):>4} {row.n:>8}"
        lines.append(
            f"    {span}  predicted {percent(row.expected):>4}  observed {percent(row.true):>4} {drawn}".rstrip()
        )
    return lines
