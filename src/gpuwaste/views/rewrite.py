"""What a language model may do to a sentence: reword it. Numbers, names and statements about them stay.

The model gets a sentence with {{fact}} in place of a number or a name, never a value. Its answer is accepted only if it
has the same facts and the same content words in the same order; it may join the sentence differently, add an opening
phrase, articles and pronouns, and use synonyms. Values are inserted after that.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, get_args

from gpuwaste.show.view_document import Fact
from gpuwaste.views.narrative import PLACE

Refused = Literal[
    "too_long", "number", "comparison", "unknown_fact", "changed_facts", "unknown_word", "changed_words", "unchanged"
]
"""Why an answer is rejected."""

REFUSED: Final[tuple[Refused, ...]] = get_args(Refused)
LONGEST: Final = 600
_FACT: Final = re.compile(r"\{\{ ?([a-z][a-z0-9_.]{0,63}) ?\}\}", re.IGNORECASE)
_SIGNS: Final = frozenset("%+=<>")
_TOKEN: Final = re.compile(r"\{\{[a-z0-9_.]+\}\}|[a-z]+(?:['-][a-z]+)*|[.;:,()]|\S")
_STRONG: Final = ";"
_WEAK: Final = ","
_BREAKS: Final = {".": _STRONG, ";": _STRONG, ":": ":", ",": _WEAK, "(": _WEAK, ")": _WEAK, "and": _WEAK}
_RANK: Final = (_WEAK, ":", _STRONG)


def asked(rule: str) -> str:
    """Return a rule's sentence in the form for the model: {{fact}} for {fact}."""
    return PLACE.sub(r"{{\1}}", rule)


def cleaned(answer: str) -> str:
    """Return a model's answer without the usual additions of models: thoughts, quotes, spaces."""
    text = " ".join(answer[-4 * LONGEST :].rpartition("</think>")[2].split()).strip("\"'` ")
    text = _FACT.sub(lambda match: f"{{{{{match[1].lower()}}}}}", text)
    text = text[:1].upper() + text[1:]
    return text if not text or text[-1] == "." else f"{text}."


def refusal(answer: str, rule: str) -> Refused | None:
    """Return why a cleaned answer is rejected for a rule's sentence, None where it is accepted."""
    if not 0 < len(answer) <= LONGEST:
        return "too_long"
    if not answer.isascii():  # a character may look like another letter
        return "number" if any(c.isnumeric() and not c.isascii() for c in answer) else "unknown_word"
    given, own = _tokens(answer), _tokens(asked(rule))
    if reason := _foreign(given, own):
        return reason
    facts, own_facts = ([token for token in tokens if token[0] == "{"] for tokens in (given, own))
    if sorted(facts) != sorted(own_facts):
        return "changed_facts"
    if sorted(_parts(given)) != sorted(_parts(own)):
        return "changed_words"
    return "unchanged" if given == own else None


def place(template: str, facts: Iterable[Fact]) -> str:
    """Return a checked template with the facts' texts inserted; a text is never read as a template."""
    known = {fact.id: fact.text for fact in facts}
    return _FACT.sub(lambda match: known[match[1]], template)


def _tokens(text: str) -> list[str]:
    words: Mapping[str, str] = SAME
    return [words.get(token, token) for token in _TOKEN.findall(text.lower())]


def _foreign(given: list[str], own: list[str]) -> Refused | None:
    """Return the fault of the first token that is not in the rule's sentence and may not be added."""
    start = _opened(given)
    allowed = {*own, *NEUTRAL, *_BREAKS}
    for place, token in enumerate(given):
        if token in allowed or (place < start and token in OPENERS):
            continue
        if token[0] == "{":
            return "unknown_fact"
        if any(c.isnumeric() or c in _SIGNS for c in token) or not NUMBERS.isdisjoint(token.split("-")):
            return "number"
        return "comparison" if token in COMPARISONS else "unknown_word"
    return None


def _opened(tokens: list[str]) -> int:
    """Return how many tokens are an opening phrase: words of OPENERS up to the first comma."""
    found = tokens.index(",") if "," in tokens else 0
    return found if all(token in OPENERS for token in tokens[:found]) else 0


def _parts(tokens: list[str]) -> list[list[str]]:
    """Return the content of a sentence, part by part, split at its breaks: its words except neutral ones, its facts."""
    parts: list[list[str]] = [[]]
    pending = ""
    for token in tokens[_opened(tokens) :]:
        if token in NEUTRAL:
            continue
        if mark := _BREAKS.get(token):
            pending = max(pending, mark, key=lambda one: -1 if not one else _RANK.index(one))
            continue
        if pending == _STRONG:
            parts.append([])
        elif pending and parts[-1]:
            parts[-1].append(pending)
        pending = ""
        parts[-1].append(token)
    return [part for part in parts if part]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NEUTRAL: Final = _set("""
a also an did do does had has have here indeed it its that the their them there these they this those which who
""")
"""Words that may be added or left out; forms of "be" are not: "jobs used" and "jobs were used" are two things."""

OPENERS: Final = _set("""
additionally addition as at during furthermore general in meanwhile moreover note now of on overall period
report result results same short shown summary that the these this time to up whole window sum
""")
"""Words allowed in a phrase before the first comma of a sentence: "Overall,", "In this window,"."""

SAME: Final = {
    "began": "started",
    "biggest": "largest",
    "concluded": "ended",
    "consumed": "used",
    "finished": "ended",
    "fraction": "part",
    "greatest": "largest",
    "hit": "reached",
    "launched": "started",
    "portion": "part",
    "queued": "waited",
    "submitting": "submitted",
    "utilized": "used",
    "while": "and",
    "whereas": "and",
}
"""Words that may replace another one."""

NUMBERS: Final = _set("""
both couple dozen dozens double doubled eight eighth eighty eleven fifteen fifth fifty first five forty four
fourth half halves hundred hundreds million millions nine ninety ninth one once pair percent percentage
quarter quarters second seven seventh seventy single six sixth sixty ten tenth tenths tens third thirds thirty
thousand thousands thrice three trillion triple tripled twelve twenty twice two zero billion billions
""")
"""Words for numbers or parts: rejected as such if the rule's sentence has none."""

COMPARISONS: Final = _set("""
about above all almost always any approximately around below best better bigger decrease decreased decreasing
down every exceed exceeded exceeds fall fallen falls fell few fewer fewest greater growing grew high higher
highest increase increased increasing least less little longer longest lower lowest majority many maximum
minimum minority more most much nearly never no none not only over rise risen rises rose roughly several
shorter shortest significant significantly slower slowest small smaller smallest some than under up worse
worst
""")
"""Words of more and less: rejected as such if the rule's sentence has none."""
