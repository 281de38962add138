"""Verdicts and their score as text: what each user saw and whether it was right."""

from collections.abc import Mapping, Sequence
from typing import Final

from gpuwaste.advice.verdicts.verdict_score import Calibration, PolicyScore, ScoreDocument, WeekScore
from gpuwaste.advice.verdicts.verdict_types import VerdictRow, VerdictsDocument
from gpuwaste.show.layout import Column, Look, said_lines
from gpuwaste.show.terminal_cells import UNKNOWN, fit, local_time, percent, state_code, uncut

_ROWS: Final = 40
_BARS: Final = 16
_LEAST_WITH_BARS: Final = 80  # columns of the terminal
_LEGEND: Final = {
    "HELD": "WOULD: the action if HELD had not held it back.",
    "ST": "ST: state of the job, as in squeue.",
    "RIGHT": "RIGHT: whether the prediction came true.",
}
_SCORE_LEGEND: Final = {
    "WOULD ACT": "WOULD ACT: warnings and rejects, also those held back.",
    "JUDGED": "JUDGED: those that would act and have an outcome.",
    "PRECISION": "PRECISION: share of JUDGED that was right.",
    "RECALL": "RECALL: share of the jobs that went wrong that had a warning or a reject.",
    "OPEN": "OPEN: the job has not ended.",
    "NO JOB": "NO JOB: no job belongs to the verdict.",
}


def verdicts_text(document: VerdictsDocument, look: Look) -> str:
    """Render verdicts, the newest first; for operators with the policy and its would-be decision."""
    rows = document.verdicts[:_ROWS]
    lines = look.title("Verdicts at submission") if look.header else []
    whole = bool(rows) and bool(rows[0].would_be)
    lines += _explained(look.fitted(_columns(rows, look, whole=whole)), _LEGEND, look) if rows else []
    more = len(document.verdicts) - _ROWS
    lines += [f"  ... and {more:,} older ones (--parsable prints all)"] if more > 0 else []
    for row in rows if not whole else ():
        if row.lines:
            lines += ["", f"{local_time(row.at_utc_us // 1_000_000, look.zone)} {uncut(_jobs(row))}"]
            lines += said_lines(row.lines)
    return "\n".join(lines) + "\n"


def score_text(score: ScoreDocument, look: Look) -> str:
    """Render the score: a table by week and policy, false rejects and overrides, then the calibration."""
    lines = look.title(f"Score of verdicts since {local_time(score.since, look.zone)}") if look.header else []
    lines += _score_table(score.weeks, look) if score.weeks else []
    if any(row.floored for row in score.weeks):
        lines += look.bullet("(*) below its floor: in that week the policy fell back to shadow mode")
    for row in score.policies:
        lines += _policy_lines(row, look)
    lines += look.heading("Calibration: predicted probability and observed rate")
    for found in score.calibration:
        lines += _calibration_lines(found, look)
    return "\n".join(lines) + "\n"


def _columns(rows: Sequence[VerdictRow], look: Look, *, whole: bool) -> list[Column]:
    """Return the columns of verdicts; with `whole` also what an operator sees."""
    return [
        Column("TIME", [local_time(row.at_utc_us // 1_000_000, look.zone) for row in rows], left=True, rank=4),
        Column("ACTION", [row.action for row in rows], left=True),
        *(_held(rows) if whole else ()),
        Column("JOB", [uncut(_jobs(row)) for row in rows], left=True),
        Column("ST", [_state(row) for row in rows], left=True, rank=1),
        Column("RIGHT", [_right(row) for row in rows], left=True),
        Column("USER: NAME", [f"{row.user}: {row.name}" for row in rows], most=24),
    ]


def _held(rows: Sequence[VerdictRow]) -> list[Column]:
    return [
        Column("WOULD", [row.would_be for row in rows], left=True, rank=2),
        Column("HELD", [fit(row.held or UNKNOWN, 9) for row in rows], left=True, rank=3),
        Column("POLICY", [fit(row.policy, 12) for row in rows], left=True, rank=5),
    ]


def _right(row: VerdictRow) -> str:
    came_true = row.hit if isinstance(row.hit, bool) else row.start_within
    return UNKNOWN if came_true is None else "yes" if came_true else "no"


def _state(row: VerdictRow) -> str:
    states = ",".join(state_code(state) for state in row.states[:2]) if row.stands != "rejected" else ""
    return fit(states or row.stands, 8)


def _jobs(row: VerdictRow) -> str:
    first, more = row.job_ids[:1], len(row.job_ids) - 1
    return (first[0] if first else UNKNOWN) + (f"+{more}" if more > 0 else "")


def _score_table(weeks: Sequence[WeekScore], look: Look) -> list[str]:
    table = look.fitted(
        [
            Column("WEEK", [f"{row.week}{' *' if row.floored else ''}" for row in weeks], left=True),
            Column("VERDICTS", [f"{row.n:,}" for row in weeks], rank=1),
            Column("WOULD ACT", [f"{row.would_say:,}" for row in weeks], rank=6),
            Column("WARNED", [f"{row.warned:,}" for row in weeks], rank=2),
            Column("REJECTED", [f"{row.rejected:,}" for row in weeks], rank=3),
            Column("JUDGED", [f"{row.judged:,}" for row in weeks], rank=5),
            Column("PRECISION", [percent(row.precision) for row in weeks]),
            Column("RECALL", [percent(row.recall) for row in weeks]),
            Column("OPEN", [f"{row.open:,}" for row in weeks], rank=7),
            Column("NO JOB", [f"{row.no_job:,}" for row in weeks], rank=8),
            Column("POLICY", [fit(row.policy, 24) for row in weeks], left=True, whole=True),
        ]
    )
    return _explained(table, _SCORE_LEGEND, look)


def _explained(table: list[str], legend: Mapping[str, str], look: Look) -> list[str]:
    """Return a table and what those of its heads mean that are shown."""
    words = [text for head, text in legend.items() if look.header and f" {head} " in f"{table[0]} "]
    return [*table, *(look.bullet(" ".join(words)) if words else [])]


def _policy_lines(row: PolicyScore, look: Look) -> list[str]:
    name = fit(row.policy, 24)
    lines: list[str] = []
    if row.sampled:
        lines += look.bullet(
            f"{name}: {row.sampled:,} would-be rejects passed at random; {row.sampled_judged:,} of these jobs have "
            f"ended, {row.false_rejects:,} of them well (false rejects)"
        )
    if row.starts:
        lines += look.bullet(
            f"{name}: {row.starts_within:,} of {row.starts:,} jobs ({percent(row.start_coverage)}) started in the 80 % "
            "interval that was shown"
        )
    if row.overrides:
        well = row.overrides_judged - row.overrides_hits
        lines += look.bullet(
            f"{name}: {row.overrides:,} overrides; {row.overrides_judged:,} of these jobs have ended, {well:,} of "
            "them well"
        )
    return lines


def _calibration_lines(found: Calibration, look: Look) -> list[str]:
    lines = [f"  {fit(found.target, 24)}: {found.n:,} verdicts, calibration error {percent(found.ece)}"]
    for row in found.bins:
        drawn = "|" * round(row.true * _BARS) if look.columns >= _LEAST_WITH_BARS else ""
        span = f"{percent(row.from_):>4} to {percent(row.to):>5} {row.n:>6,} verdicts"
        lines.append(
            f"    {span} predicted {percent(row.expected):>5} observed {percent(row.true):>5} {drawn}".rstrip()
        )
    return lines
