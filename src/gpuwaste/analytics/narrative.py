"""Sentences from facts by rules: every number is the text of a fact, and a sentence without its facts is left out."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from gpuwaste.analytics.document import Fact

_PLACE: Final = re.compile(r"\{([\w.]+)\}")


def narrate(sentences: Sequence[str], facts: Iterable[Fact]) -> list[str]:
    """Return the sentences, `{fact_id}` replaced by the fact's text; one with a fact that is not known is left out."""
    known = {fact.id: fact.text for fact in facts if fact.value is not None}
    return [
        _PLACE.sub(lambda match: known[match[1]], sentence)
        for sentence in sentences
        if all(name in known for name in _PLACE.findall(sentence))
    ]
