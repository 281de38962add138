"""Placeholders in the texts of a rule's actions: {job.id} and other facts, put in as plain words of one line."""

import re
from collections.abc import Mapping
from typing import Any, Final

from gpuwaste.act.rules.facts import FactType
from gpuwaste.core.typed_toml import nearest
from gpuwaste.core.units import HOUR_S

_PLACE: Final = re.compile(r"\{([^{}\n]{0,80})\}")
_ODD: Final = re.compile(r"[^ -~\u00a1-\u2027\u202a-\ud7ff\ue000-\U0010ffff]|[;=]")
_LONGEST: Final = 40
_NUMBER: Final = 16
_UNKNOWN: Final = "unknown"


def names_in(text: str) -> list[str]:
    """Return the facts that a text names."""
    return _PLACE.findall(text)


def problem_of(text: str, facts: Mapping[str, FactType]) -> str:
    """Return what is wrong with the placeholders of a text, "" where nothing is."""
    for name in _PLACE.findall(text):
        if name not in facts:
            return f"unknown fact {name!r}{nearest(name, set(facts))}"
    return ""


def widest(text: str, facts: Mapping[str, FactType]) -> str:
    """Return a text as long as it can become."""
    return _PLACE.sub(lambda match: "x" * (_LONGEST if facts.get(match[1]) == "string" else _NUMBER), text)


def filled(text: str, values: Mapping[str, Any]) -> str:
    """Return a text with facts put in; a control character or a mark of Slurm's comments in a name becomes `?`."""
    return _PLACE.sub(lambda match: _word(match[1], values.get(match[1])), text)


def _word(name: str, value: Any) -> str:
    if value is None:
        return _UNKNOWN
    if isinstance(value, float):
        return _duration(value) if name.endswith("_s") else f"{value:.1f}" if abs(value) > 1 else f"{value:.2f}"
    return _ODD.sub("?", str(value))[:_LONGEST]


def _duration(seconds: float) -> str:
    """Return seconds as people say them, by whole minutes."""
    minutes = int(seconds // 60)
    hours, rest = divmod(minutes, HOUR_S // 60)
    return f"{hours} h {rest} min" if hours else f"{minutes} min"
