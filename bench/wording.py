"""Figure: a language model's sentences about views: taken, refused, wrong numbers (--url ... --model ... STORE ...).

Each sentence by rules of every view is given to the model several times, with other seeds; what is taken is placed in
the documents of the stores (gpuwaste history import, gpuwaste analyze --into), whole and week by week. A number is
wrong where a sentence with values has other numbers than that by rules. Beside it the same model is given the
sentences with their values and asked for a summary, unchecked, as programs do that send charts or tables to a model.
Prints a table, then one line of JSON.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import WireError
from gpuwaste.core.site_config import AnalyticsConfig
from gpuwaste.core.units import WEEK_S
from gpuwaste.show.view_document import ViewDocument
from gpuwaste.store.database import Database
from gpuwaste.views.language_model import LanguageModel
from gpuwaste.views.narrative import complete
from gpuwaste.views.rewrite import cleaned, place, refusal
from gpuwaste.views.view import all_views, look
from gpuwaste.views.view_query import ViewQuery, stored_window

_NUMBER: Final = re.compile(r"\d[\d,]*(?:\.\d+)?")
_TEMPERATURE: Final = 0.7


def main(words: Sequence[str] | None = None) -> int:
    """Ask, place, count and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="such as http://127.0.0.1:8000/v1")
    parser.add_argument("--model", default="any")
    parser.add_argument("--tries", type=int, default=3, help="times that each sentence is asked for")
    parser.add_argument("--summaries", type=int, default=12, help="summaries of sentences with values, unchecked")
    parser.add_argument("--seconds", type=float, default=900.0, help="no sentence is asked for after that")
    parser.add_argument("--answers", type=Path, help="file that keeps the answers, to go on with it later")
    parser.add_argument("stores", nargs="+", type=Path)
    options = parser.parse_args(words)
    model = KeptAnswers(AnalyticsConfig(options.url, options.model), options.answers)
    found = [document for store in options.stores for document in documents(store)]
    rules = sorted({rule for document in found for rule in _rules(document)})
    results, taken = asked(model, rules, options.tries, time.monotonic() + options.seconds)
    placed = Counter[str]()
    for document in found:
        placed.update(checked(document, taken))
    free = unchecked(model, found, options.summaries)
    figures = {
        "model": options.model,
        "rules": len(rules),
        "asked": results.total(),
        "results": dict(results),
        "documents": len(found),
        **placed,
        "unchecked": dict(free),
        "wordings": sorted(text for texts in taken.values() for text in texts),
    }
    for name, value in figures.items():
        sys.stdout.write(f"{name:12} {value}\n")
    sys.stdout.write(f"{json.dumps(figures)}\n")
    return 1 if placed["wrong"] else 0


class KeptAnswers(LanguageModel):
    """A model whose answers are kept in a file."""

    def __init__(self, config: AnalyticsConfig, file: Path | None) -> None:
        super().__init__(config, 120.0)
        self._file = file
        self._kept: dict[str, str] = {}
        if file is not None and file.exists():
            self._kept = json.loads(file.read_text(encoding="utf-8"))

    def completed(self, messages: list[dict[str, str]], *, temperature: float = 0.0, seed: int = 0) -> str:
        """Return the answer that is kept, or ask and keep it."""
        key = json.dumps([messages, temperature, seed])
        if key not in self._kept:
            self._kept[key] = super().completed(messages, temperature=temperature, seed=seed)
            if self._file is not None:
                self._file.write_text(json.dumps(self._kept), encoding="utf-8")
        return self._kept[key]


def documents(store: Path) -> Iterable[ViewDocument]:
    """Yield every view of a store, whole and by week."""
    with closing(Database.open(store, "hub", {"threads": "1"})) as db:
        whole = stored_window(db, None, None)
        edges = [(whole.start, whole.end)]
        edges += [(start, start + WEEK_S) for start in range(whole.start, whole.end - WEEK_S, WEEK_S)]
        for start, end in edges:
            window = stored_window(db, start, end)
            yield from (look(view, ViewQuery(db, window)).document for view in all_views().values())


def asked(
    model: LanguageModel, rules: Sequence[str], tries: int, until: float
) -> tuple[Counter[str], dict[str, list[str]]]:
    """Return what became of the sentences, and the wordings that are taken."""
    results, taken = Counter[str](), dict[str, list[str]]()
    for number in range(tries):
        for rule in rules:
            if time.monotonic() > until:
                return results, taken
            try:
                answer = cleaned(model.worded(rule, temperature=_TEMPERATURE if number else 0.0, seed=number + 1))
            except WireError as error:
                sys.stderr.write(f"{error}\n")
                results["no_answer"] += 1
                continue
            result = refusal(answer, rule) or "worded"
            results[result] += 1
            sys.stderr.write(f"{result:14} {answer[:150]}\n")
            if result == "worded" and answer not in taken.setdefault(rule, []):
                taken[rule].append(answer)
    return results, taken


def checked(document: ViewDocument, taken: dict[str, list[str]]) -> Counter[str]:
    """Return the sentences and numbers that the wordings give a document, and those that differ from the rules'."""
    counts = Counter[str](sentences=0, numbers=0, wrong=0)
    for rule, text in zip(_rules(document), document.narrative, strict=True):
        truth = Counter(_NUMBER.findall(text))
        for template in taken.get(rule, ()):
            numbers = Counter(_NUMBER.findall(place(template, document.facts)))
            counts.update(sentences=1, numbers=numbers.total(), wrong=((numbers - truth) | (truth - numbers)).total())
    return counts


def unchecked(model: LanguageModel, found: Sequence[ViewDocument], most: int) -> Counter[str]:
    """Return how many numbers a model writes that sees the values, and how many of them are nowhere in what it saw."""
    counts = Counter[str]()
    told = [document for document in found if len(_NUMBER.findall(" ".join(document.narrative))) > 1]
    for document in told[:: max(1, len(told) // max(1, most))][:most]:
        text = " ".join(document.narrative)
        try:
            answer = model.completed(
                [
                    {"role": "system", "content": "Act as a data scientist. Summarize the key trends with statistics."},
                    {"role": "user", "content": text},
                ]
            )
        except WireError as error:
            sys.stderr.write(f"{error}\n")
            continue
        truth = set(_NUMBER.findall(text))
        numbers = _NUMBER.findall(answer)
        sys.stderr.write(f"unchecked      {answer[:300]}\n")
        counts.update(summaries=1, numbers=len(numbers), not_seen=sum(number not in truth for number in numbers))
    return counts


def _rules(document: ViewDocument) -> list[str]:
    return complete(all_views()[document.view].sentences, document.facts)


if __name__ == "__main__":
    sys.exit(main())
