"""The scorecard's section on retraining: the model of each log with status, frozen and retrained every week."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tabulate import tabulate

from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.models.evaluate.figures import Figures
from gpuwaste.models.evaluate.log_evaluation import Prequential, prequential
from gpuwaste.models.evaluate.method import EvaluationTask
from gpuwaste.models.training_rows import prepare, split_by_time
from tools.scorecard.logs import Log
from tools.scorecard.part import SEED, read

TITLE: Final = "## Retrained every week"
RETRAINED: Final = ("KTH-SP2", "LLNL-Atlas", "CEA-Curie 2012-03/04", "CEA-Curie 2012-06/07")
_SHOWN: Final = (
    ("average_precision", "AP"),
    ("f1", "F1"),
    ("ece", "ECE"),
    ("brier", "Brier"),
)
_ABOUT: Final = """Over the last 30 % of a log the trees are fitted again at the first submission of each week, on all
jobs that had ended by then, with the same recipe and no search (prequential). Frozen is the model of the tables below,
fitted once. Both pass through the same rolling correction, and their thresholds are those of the validation part. Every
new model is taken here; a site takes only one that was better in shadow ([how](how-to/renew.md)). The last column is
the retrained model minus the frozen one, on the same jobs, with its interval of 95 % by a paired bootstrap over users.
Target failure, seed {seed}, one thread; `make scorecard-weekly` writes only this section.
"""


def weekly_of(log: Log, data: Path) -> Prequential:
    """Judge failure on one log. Raises NoDataError."""
    known = prepare(read(log, data).table, log.name)
    split = split_by_time(known.table)
    return prequential(EvaluationTask(BY_NAME["failure"], known.table, known.vectors, split, SEED, 1))


def section(found: Sequence[tuple[Log, Prequential]]) -> str:
    """Return the section as Markdown, "" without a log."""
    if not found:
        return ""
    header = ["log", "days", "fits", *(f"{title}, frozen → retrained" for _, title in _SHOWN), "gain in AP"]
    rows = [[log.name, f"{one.days:.0f}", one.fits, *_cells(one), _difference(one)] for log, one in found]
    table = tabulate(rows, headers=header, tablefmt="pipe", disable_numparse=True)
    return "\n".join([TITLE, "", _ABOUT.format(seed=SEED), table, ""])


def replaced(page: str, text: str) -> str:
    """Return a page with another section of this title; one that has none gets it before the first log's tables."""
    begin = page.find(f"{TITLE}\n")
    if begin < 0:
        begin = end = page.index("\n## KTH-SP2\n") + 1
    else:
        end = page.index("\n## ", begin) + 1
    return f"{page[:begin]}{text}\n{page[end:]}"


def _cells(one: Prequential) -> list[str]:
    return [f"{_value(one.frozen, name)} → {_value(one.weekly, name)}" for name, _ in _SHOWN]


def _value(figures: Figures, name: str) -> str:
    return f"{figures[name].value:.3f}"


def _difference(one: Prequential) -> str:
    found = one.paired.average_precision
    return f"{found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
