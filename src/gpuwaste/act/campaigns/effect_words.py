"""The answer of a campaign in one sentence, and what weakens it."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from gpuwaste.act.campaigns.campaign_definition import Unit
from gpuwaste.act.campaigns.effect_types import CampaignEffect, EffectFigure
from gpuwaste.core.units import say_percent
from gpuwaste.show.page_words import date_words

MOST_UNKNOWN: Final = 0.05  # by which the unknown shares of both sides may differ
LARGE_UNIT: Final = 0.25
SPLIT_WARNING: Final = (
    "This is a difference, not an effect: workload, users and weeks differ as well. Only a campaign measures an effect."
)
MINUS: Final = "\N{MINUS SIGN}"


def units_word(unit: Unit, count: int) -> str:
    """Return "1 user" or "12 users"."""
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def hours(value: float) -> str:
    """Print GPU-hours for a sentence: three digits, a minus that is one."""
    size = abs(value)
    text = f"{size:,.0f}" if size >= 100 else f"{size:.3g}"  # noqa: PLR2004 three digits
    return f"{MINUS if value < 0 else ''}{text}"


def points(value: float) -> str:
    """Print a difference of shares in percentage points, with its sign."""
    rounded = round(100 * value, 1)
    return f"{MINUS if rounded < 0 else '+'}{abs(rounded):.1f}"


def with_sentence(effect: CampaignEffect) -> CampaignEffect:
    """Return an effect with its sentence and what weakens it."""
    return replace(effect, sentence=_sentence(effect), problems=[*effect.problems, *_problems(effect)])


def _sentence(effect: CampaignEffect) -> str:
    since = f"Since {date_words(effect.start)}"
    sides = f"{units_word(effect.unit, effect.notified)} notified, {effect.held_back:,} held back"
    if effect.state == "planned":
        return f"Begins on {date_words(effect.start)}: {sides}. {_outlook(effect)}".rstrip()
    if effect.saved_gpu_h.low is None and effect.saved_gpu_h.high is None:
        return f"{since}: not known yet after {effect.complete} of {effect.weeks} weeks, {sides}. {_outlook(effect)}"
    worth = _worth(effect)
    return f"{since}: {_saved(effect)}{worth}, {sides}; {_failures(effect)}."


def _saved(effect: CampaignEffect) -> str:
    saved, held = effect.saved_gpu_h, f"of {hours(effect.notified_held_gpu_h)} held"
    low, high = saved.low, saved.high
    if low is not None and low > 0 and saved.value is not None:
        top = f"to {hours(high)}" if high is not None else "or more"
        return f"{hours(saved.value)} GPU-hours saved (95 %: {hours(low)} {top}) {held}"
    if high is not None and high < 0 and saved.value is not None:
        least = f"{hours(-high)} to {hours(-low)}" if low is not None else f"{hours(-high)} or more"
        return f"{hours(-saved.value)} more GPU-hours idle (95 %: {least}) {held}"
    more = "an unknown number" if low is None else hours(-min(low, 0.0))
    fewer = "an unknown number" if high is None else hours(max(high, 0.0))
    return f"no saving shown (95 %: from {more} more to {fewer} fewer idle GPU-hours) {held}"


def _worth(effect: CampaignEffect) -> str:
    worth = effect.worth
    if worth.value is None or worth.low is None or worth.low <= 0:
        return ""
    top = f" to {worth.high:,.0f}" if worth.high is not None else " or more"
    return f", worth {worth.value:,.0f} {effect.currency} ({worth.low:,.0f}{top})"


def _failures(effect: CampaignEffect) -> str:
    words = [_more("failures", effect.failed_more), _more("time-outs", effect.timed_out_more)]
    return ", ".join(words)


def _more(what: str, figure: EffectFigure) -> str:
    """Return whether notified units had more of it, with the interval in percentage points."""
    if figure.low is None or figure.high is None:
        return f"{what} not known yet"
    low, high = (round(100 * end, 1) for end in (figure.low, figure.high))
    if low == high == 0:
        return f"as many {what}"
    ends = f"({points(figure.low)} to {points(figure.high)} points)"
    if low > 0:
        return f"more {what} {ends}"
    return f"fewer {what} {ends}" if high < 0 else f"no more {what} shown {ends}"


def _outlook(effect: CampaignEffect) -> str:
    if effect.smallest_ratio is None:
        return ""
    if effect.smallest_ratio >= 1:
        return f"With so few {effect.unit}s no effect can be shown by {date_words(effect.end)}."
    least = say_percent(effect.smallest_ratio)
    return f"A saving of {least} of the idle GPU-hours can be shown by {date_words(effect.end)} (in 80 of 100 cases)."


def _problems(effect: CampaignEffect) -> Sequence[str]:
    found = []
    if not effect.notified + effect.held_back:
        found.append(f"no {effect.unit} of it has a GPU job: see users and accounts in its file")
    if effect.leaked:
        found.append(
            f"{effect.leaked:,} notices reached {effect.unit}s that are held back: the key or the files of the hosts"
            " differ, or the advisor was restarted without them"
        )
    if effect.without_data:
        found.append(f"{effect.without_data} of {effect.complete} weeks are left out: too many GPU-hours are unknown")
    notified, other = effect.notified_unknown_ratio, effect.other_unknown_ratio
    if notified is not None and other is not None and abs(notified - other) > MOST_UNKNOWN:
        found.append(
            f"{say_percent(notified)} of the GPU-hours of those notified are unknown,"
            f" and {say_percent(other)} of the others"
        )
    if effect.largest_unit_ratio is not None and effect.largest_unit_ratio > LARGE_UNIT:
        share = say_percent(effect.largest_unit_ratio)
        found.append(f"one {effect.unit} holds {share} of the GPU-hours: the interval is as wide as it is for that")
    if effect.complete and not effect.withheld and not effect.notices:
        found.append("nothing was sent or held back: does the site use what the campaign is about?")
    return found
