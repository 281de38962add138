"""The effect of campaigns in a terminal."""

from typing import Final

from gpuwaste.act.campaigns.effect_types import CampaignEffect, EffectFigure, EffectsDocument, SplitDocument, SplitSide
from gpuwaste.act.campaigns.effect_words import MINUS, hours, points, units_word
from gpuwaste.core.units import say_percent
from gpuwaste.show.layout import Look
from gpuwaste.show.terminal_cells import fit, harmless_document, local_time

_NOT_YET: Final = "not known yet"
_RECORD: Final = 10  # lines of a campaign


def effects_text(document: EffectsDocument, look: Look) -> str:
    """Render the campaigns, each with its sentence and figures."""
    document = harmless_document(document)
    lines = look.title("Effect of campaigns") if look.header else []
    if not document.campaigns:
        lines += look.bullet("no campaign: no saving is claimed (docs/how-to/effect.md)")
    for campaign in document.campaigns:
        lines += _campaign(campaign, look)
    if document.errors:
        lines += look.heading("Not in use")
        lines += [line for error in document.errors for line in look.bullet(error)]
    return "\n".join(lines) + "\n"


def effect_rows(one: CampaignEffect) -> list[tuple[str, str]]:
    """Return the figures of a campaign, each with its name."""
    return [
        ("held back", f"{', '.join(one.what)} from {units_word(one.unit, one.held_back)}"),
        ("weeks", f"{one.complete} of {one.weeks} complete"),
        ("saved share of idle", _share(one.saved_ratio)),
        ("change of GPU-hours held", _change(one.held_ratio)),
        ("change of jobs", _change(one.jobs_ratio)),
        ("change of failures", _points(one.failed_more)),
        ("change of time-outs", _points(one.timed_out_more)),
        ("if half of it spreads", _spill(one)),
        ("notices", f"{one.notices:,} given, {one.withheld:,} held back, {one.leaked:,} given by mistake"),
    ]


def _campaign(one: CampaignEffect, look: Look) -> list[str]:
    lines = look.heading(f"{one.name}: {one.state}")
    lines += look.bullet(one.sentence)
    lines += ["", *look.table(("FIGURE", "VALUE"), effect_rows(one), frozenset({0, 1}))]
    for problem in one.problems:
        lines += look.bullet(f"but {problem}")
    rows = [(local_time(line.at, look.zone), line.what, fit(line.words, 60)) for line in one.record[-_RECORD:]]
    return [*lines, "", *look.table(("TIME", "RECORD", "WORDS"), rows, frozenset({0, 1, 2}))] if rows else lines


def _share(figure: EffectFigure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return _NOT_YET
    return f"{_percent(figure.value)} (95 %: {_percent(figure.low)} to {_percent(figure.high)})"


def _change(figure: EffectFigure) -> str:
    """Print by how much an outcome is larger where notified, from the share by which it is smaller."""
    if figure.value is None or figure.low is None or figure.high is None:
        return _NOT_YET
    value, low, high = (f"{points(-share)} %" for share in (figure.value, figure.high, figure.low))
    return f"{value} (95 %: {low} to {high})"


def _percent(ratio: float) -> str:
    return f"{MINUS}{say_percent(-ratio)}" if ratio < 0 else say_percent(ratio)


def _points(figure: EffectFigure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return _NOT_YET
    return f"{points(figure.value)} points (95 %: {points(figure.low)} to {points(figure.high)})"


def _spill(one: CampaignEffect) -> str:
    return "-" if one.spill_over_ratio is None else f"{_percent(one.spill_over_ratio)} of the idle GPU-hours saved"


def split_text(document: SplitDocument, look: Look) -> str:
    """Render a difference, with the warning above it."""
    lines = look.title("Before and after") if look.header else []
    lines += look.bullet(document.warning)
    rows = [_side("before", document.before, look), _side("after", document.after, look)]
    headers = ("", "FROM", "TO", "HELD", "IDLE", "SHARE", "UNKNOWN", "JOBS", "FAILED", "TIMEOUT")
    lines += ["", *look.table(headers, rows, frozenset({0, 1, 2})), "  HELD, IDLE and UNKNOWN in GPU-hours"]
    return "\n".join(lines) + "\n"


def _side(name: str, side: SplitSide, look: Look) -> tuple[str, ...]:
    return (
        name,
        local_time(side.start, look.zone)[:10],
        local_time(side.end, look.zone)[:10],
        hours(side.held_gpu_h),
        hours(side.idle_gpu_h),
        say_percent(side.idle_gpu_h / side.held_gpu_h) if side.held_gpu_h else "-",
        hours(side.unknown_gpu_h),
        str(side.jobs),
        str(side.failed),
        str(side.timed_out),
    )
