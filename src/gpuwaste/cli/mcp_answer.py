"""Documents as answers to a language model: one JSON text of a bounded size that says what was left out."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError

MOST: Final = 60_000  # characters of an answer: about 20,000 tokens
_LONG: Final = 1000  # characters of a text that is kept where the answer is too long


def answer_text(document: dict[str, Any], most: int = MOST) -> str:
    """Return the document as JSON of `most` characters at most; `left_out` has what was cut, by place in the document.

    The longest list is halved until it fits; before that, long texts are cut. What is not ASCII is escaped.
    Raises GpuwasteError where it is too long without any list.
    """
    text = _json(document)
    if len(text) <= most:
        return text
    left_out: Counter[str] = Counter()
    found = _cut_texts(document, "", left_out)
    while len(text := _json({**found, "left_out": left_out})) > most:
        place, items = max(_lists(found, ""), key=lambda pair: len(pair[1]), default=("", []))
        if not items:
            raise GpuwasteError(f"the answer has {len(text)} characters, more than {most}: ask for less")
        kept = len(items) // 2
        left_out[place] += len(items) - kept
        del items[kept:]
    return text


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))


def _cut_texts(value: Any, place: str, left_out: Counter[str]) -> Any:
    """Return a copy with long texts cut; how many characters that took away is added to `left_out`."""
    if isinstance(value, str) and len(value) > _LONG:
        left_out[f"{place} (characters)"] += len(value) - _LONG
        return value[:_LONG]
    if isinstance(value, dict):
        return {name: _cut_texts(item, f"{place}.{name}".lstrip("."), left_out) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut_texts(item, place, left_out) for item in value]
    return value


def _lists(value: Any, place: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of a document with their places, as runs.devices."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _lists(item, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list):
        yield place, value
        for item in value:
            yield from _lists(item, place)
