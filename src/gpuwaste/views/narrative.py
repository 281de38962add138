"""Sentences made from facts by rules: every number is the text of a fact; a sentence without its facts is left out.

`{fact_id}` is the text of a fact; `{fact_id+}` also leaves the sentence out where the fact is 0.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from gpuwaste.show.view_document import Change, Fact

PLACE: Final = re.compile(r"\{([\w.]+)(\+?)\}")


def narrate(sentences: Sequence[str], facts: Iterable[Fact]) -> list[str]:
    """Return the sentences with the facts' texts; a sentence with an unknown fact is left out."""
    known = {fact.id: fact for fact in facts}
    return [PLACE.sub(lambda match: known[match[1]].text, one) for one in complete(sentences, known.values())]


def complete(sentences: Sequence[str], facts: Iterable[Fact]) -> list[str]:
    """Return the sentences all of whose facts are known, and not 0 where they must not be."""
    known = {fact.id: fact.value for fact in facts if fact.value is not None}
    return [
        one for one in sentences if all(known.get(name) if some else name in known for name, some in PLACE.findall(one))
    ]


def narrate_changes(changes: Sequence[Change]) -> list[str]:
    """Return sentences on what changed, the largest change first, and on what did not."""
    clear = [change for change in changes if change.beyond_noise]
    same = [change for change in changes if change.beyond_noise is False]
    unclear = [change for change in changes if change.beyond_noise is None and change.difference]
    sentences = [f"{_moved(change)}: more than the days vary." for change in clear]
    if same:
        names = "; ".join(f"{change.means} ({change.before_text}, then {change.after_text})" for change in same)
        sentences.append(f"No change beyond what the days vary: {names}.")
    if not clear and not same:
        sentences += _unclear(unclear)
    return sentences or ["No change."]


def _unclear(changes: Sequence[Change]) -> list[str]:
    """Return the changes, of which the first, the headline, is marked as possible noise, and a remark on all."""
    found = [f"{_moved(change)}." for change in changes]
    if found:
        found[0] = f"{found[0][:-1]}; whether it is more than noise is not known."
    return [*found, "None of these changes is known to be more than noise."] if len(found) > 1 else found


def _moved(change: Change) -> str:
    verb = "rises" if change.difference > 0 else "falls"
    means = change.means[0].upper() + change.means[1:]
    return f"{means}: {verb} from {change.before_text} to {change.after_text} ({change.text})"
