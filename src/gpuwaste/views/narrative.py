"""Sentences made from facts by rules: every number is the text of a fact; a sentence without its facts is left out.

`{fact_id}` is the text of a fact; `{fact_id+}` also leaves the sentence out where the fact is 0. A part in brackets
is left out by itself: for the same reasons, and where its fact has the text of a fact before it: `half waited {p50} or
less[; some longer than {p95}]`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from gpuwaste.show.view_document import Change, Fact

PLACE: Final = re.compile(r"\{([\w.]+)(\+?)\}")
_PART: Final = re.compile(r"\[([^\]]*)\]")


def narrate(sentences: Sequence[str], facts: Iterable[Fact]) -> list[str]:
    """Return the sentences with the facts' texts; a sentence with an unknown fact is left out."""
    known = {fact.id: fact for fact in facts}
    return [PLACE.sub(lambda match: known[match[1]].text, one) for one in complete(sentences, known.values())]


def complete(sentences: Sequence[str], facts: Iterable[Fact]) -> list[str]:
    """Return the sentences all of whose facts are known, and not 0 where they must not be; parts are resolved."""
    known = {fact.id: fact for fact in facts if fact.value is not None}
    return [_with_parts(one, known) for one in sentences if _is_true(_PART.sub("", one), known)]


def _is_true(text: str, known: Mapping[str, Fact]) -> bool:
    return all(name in known and (known[name].value or not some) for name, some in PLACE.findall(text))


def _with_parts(sentence: str, known: Mapping[str, Fact]) -> str:
    """Return a sentence without brackets, and without the parts that are not true or repeat a fact before them."""

    def part(match: re.Match[str]) -> str:
        if not _is_true(match[1], known):
            return ""
        before = {known[name].text for name, _ in PLACE.findall(match.string[: match.start()]) if name in known}
        return "" if any(known[name].text in before for name, _ in PLACE.findall(match[1])) else match[1]

    return _PART.sub(part, sentence)


def narrate_changes(changes: Sequence[Change]) -> list[str]:
    """Return the changes that are more than noise, the largest first; where none is, one sentence that says so."""
    clear = [f"{_moved(change)} ({change.text}, more than noise)." for change in changes if change.beyond_noise]
    if clear:
        return clear
    if any(change.beyond_noise is False for change in changes):
        return ["No change is more than noise."]
    first = next((change for change in changes if change.difference), None)
    return ["No change."] if first is None else [f"{_moved(first)} (too few days to test)."]


def _moved(change: Change) -> str:
    """Return both values of a change with one unit: Median wait: 10 min → 20 min, GPU-hours wasted: 3 → 4 GPU-hours."""
    same = f" {change.unit}"
    before = change.before_text.removesuffix(same) if change.after_text.endswith(same) else change.before_text
    return f"{change.means[0].upper()}{change.means[1:]}: {before} → {change.after_text}"
