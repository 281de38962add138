"""The scorecard's part of one log, made in a process of its own: its tables, and the numbers that goals look at."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.core.errors import NoDataError
from gpuwaste.models.evaluate.evaluation_text import evaluation_text
from gpuwaste.models.evaluate.log_evaluation import Evaluation, evaluate
from gpuwaste.models.evaluate.method import OURS, all_methods
from gpuwaste.models.job_source import JobSource, load_store, load_swf
from gpuwaste.models.training_rows import prepare
from tools.scorecard.logs import Log, data_of
from tools.scorecard.uio import as_sacct

SEED: Final = 1
SEEDED: Final = ("failure", "walltime")  # the targets of which the spread over seeds is shown
Numbers = dict[str, list[float]]  # "target.method.metric" -> one value for each seed
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Part:
    """`text` is Markdown; `failed` is the line with which `gpuwaste model evaluate` ends on this log, "" for none."""

    log: Log
    text: str
    numbers: Numbers
    failed: str = ""


def make_part(log: Log, data: Path, say: Say = lambda _: None) -> Part:
    """Judge one log. One thread, so that the figures do not depend on how many there are."""
    try:
        known = prepare(read(log, data).table, log.name)
        found = evaluate(log.name, known.table, known.vectors, seed=SEED, threads=1, jfp=True, progress=say)
    except NoDataError as error:
        return Part(log, "", {}, str(error))
    numbers = _numbers(found)
    ours = [method for method in all_methods() if method.name == OURS]
    for seed in range(SEED + 1, SEED + log.seeds):
        targets = [BY_NAME[name] for name in SEEDED if name in found.results]
        again = evaluate(
            log.name, known.table, known.vectors, targets=targets, methods=ours, seed=seed, threads=1, intervals=False
        )
        for name, values in _numbers(again).items():
            numbers[name] += values
    return Part(log, evaluation_text(found, "pipe"), numbers)


def read(log: Log, data: Path) -> JobSource:
    """Return the jobs of a log. Raises NoDataError."""
    path = data_of(log, data)
    if path.suffix != ".csv":
        return load_swf(path, log.name)
    from gpuwaste.core.clock import SystemClock  # noqa: PLC0415 readers of one log of eight
    from gpuwaste.jobs.importers.bulk_import import import_source  # noqa: PLC0415
    from gpuwaste.jobs.importers.history_store import HistoryStore  # noqa: PLC0415
    from gpuwaste.jobs.importers.sources.sacct import SacctFile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="gpuwaste-scorecard-") as folder:
        text, store = Path(folder) / "sacct.txt", Path(folder) / "history.duckdb"
        as_sacct(path, text)
        opened = HistoryStore.open(store, SystemClock())
        try:
            import_source(opened, store, SacctFile(text, "uio"))
        finally:
            opened.close()
        return load_store(store)


def _numbers(found: Evaluation) -> Numbers:
    return {
        f"{target}.{method}.{metric}": [figure.value]
        for target, results in found.results.items()
        for method, result in results.items()
        for metric, figure in result.figures.items()
    }
