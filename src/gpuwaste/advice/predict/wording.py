"""Numbers and features in the words of the user whose job it is."""

import re
from typing import Final

from gpuwaste.advice.predict.features.base import Feature
from gpuwaste.advice.predict.view import LONGEST, RING, SHORTEST, VectorView
from gpuwaste.core.units import DAY_S, HOUR_S, format_size, say_duration
from gpuwaste.jobs.history.keys import KEYS

_NAME: Final = 40
_SECONDS: Final = {"s": 1, "h": HOUR_S, "d": DAY_S}
_TEXTS: Final = {key.name: key.text for key in KEYS}
_ONE: Final = re.compile(r"\b1 (node|CPU|GPU)s\b")
_SUBJECTS: Final = {
    "outcomes": "how {jobs} ended lately",
    "durations": "how long {jobs} ran lately",
    "queue": "how many {jobs} wait and run now",
    "memory": "how much memory {jobs} used lately",
    "gpu": "how {jobs} used their GPUs lately",
}


def number(value: float, digits: int = 1) -> str:
    """Return a number without an empty fraction."""
    return f"{value:.{digits}f}".removesuffix(".0")


def amount(value: float, unit: str) -> str:
    """Return a value in its unit as one says it."""
    if unit in _SECONDS:
        return say_duration(value * _SECONDS[unit])
    if unit == "B":
        return format_size(value)
    return f"{value:.0f}" if value == round(value) else number(value, 1 if abs(value) >= 1 else 2)


def named(key: str, view: VectorView) -> str:
    """Return how the user's jobs of a key are told from others: " named train"."""
    if key == "name":
        return f" named {view.request.name[:_NAME]}"
    return " of this size and limit" if key == "shape" else ""


def last_jobs(key: str, view: VectorView) -> str:
    """Return "your last 8 jobs named train", with as many as there are."""
    count = view.remembered(key)
    return f"your last {count} jobs{named(key, view)}" if count > 1 else f"your last job{named(key, view)}"


def span(view: VectorView, key: str) -> str:
    """Return how long a key's last jobs ran: "20 min to 27 min", "up to 27 min" where the shortest is not known."""
    low, high = view.seconds(key, SHORTEST), view.seconds(key, LONGEST)
    longest = "" if high is None else say_duration(high)
    if low is None:
        return f"up to {longest}"
    return longest if say_duration(low) == longest else f"{say_duration(low)} to {longest}"


def feature_text(feature: Feature, value: float, key: str, view: VectorView) -> str:
    """Return a feature's own sentence with its value, addressed to the user; `key` is one of theirs, "" for none."""
    flag = "{value}: 1 yes, 0 no"
    shown = amount(value, feature.unit)
    if flag in feature.text:
        text = feature.text.replace(f" ({flag})", "")
        text = text if value else text.replace(" failed", " did not fail") if " failed" in text else f"no: {text}"
    else:
        text = feature.text.replace("{value}", shown)
    if key:
        jobs, yours = f"jobs {_TEXTS[key]}", f"your jobs{named(key, view)}"
        text = text.replace(f"the last {RING} {jobs}", last_jobs(key, view))
        text = text.replace(f"the last of the {jobs}", f"your last job{named(key, view)}")
        text = text.replace(f"{shown} {jobs}", f"{shown} of {yours}").replace(f"of the {jobs}", f"of {yours}")
        text = text.replace(jobs, yours)
    return _ONE.sub(r"1 \1", text)


def others_text(key: str, subject: str) -> str:
    """Return a sentence on jobs that are not all the user's own: without numbers, which would tell of others' jobs."""
    return _SUBJECTS[subject].format(jobs=f"jobs {_TEXTS[key]}")
