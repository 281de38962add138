"""How a model carries over: learnt on one log, judged on the last 30 % of another, beside that log's own model.

This is why no model of somebody else's log is shipped: the baseline's heuristics stand in the same table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.bundle import BASELINE, Bundle, load_bundle, our_features
from gpuwaste.advice.predict.manifest import TargetModel
from gpuwaste.advice.predict.rolling import busy_users, roll, static
from gpuwaste.advice.predict.targets import BY_NAME, labels
from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.models.prediction_metrics import average_precision, ece, reserved_over_used, under_rate
from gpuwaste.models.target_fit import Fitted, fit
from gpuwaste.models.training_rows import Rows, split_by_time

QUANTILE: Final = 0.95  # of the walltime, whose under-estimates are printed
_NAN: Final = float("nan")


@dataclass(frozen=True, slots=True)
class Log:
    """A log to learn from and to judge on; `vectors` float32 [n, F] of its rows."""

    name: str
    table: JobTable
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Carried:
    """One model on one log's test rows; `figures` as it came (`as_is`) and under rolling correction (`rolled`)."""

    learnt_on: str
    judged_on: str
    target: str
    rows: int
    as_is: Mapping[str, float]
    rolled: Mapping[str, float]


def carry_over(
    logs: Sequence[Log], targets: Sequence[str] = ("failure", "walltime"), *, seed: int = 1, threads: int = 2
) -> list[Carried]:
    """Learn on each log and judge on every log, with the shipped baseline beside; a log without labels is left out."""
    results: list[Carried] = []
    baseline = load_bundle(BASELINE)
    for target in targets:
        models = {log.name: fitted for log in logs if (fitted := _learn(target, log, seed, threads))}
        for log in logs:
            if not np.isfinite(labels(target, log.table)).any():
                continue
            known = {name: (fitted.model, fitted.raw(log.vectors)) for name, fitted in models.items()}
            known["baseline"] = _baseline(baseline, target, log)
            results += [_judged(name, log, model, raw) for name, (model, raw) in known.items()]
    return results


def section(results: Sequence[Carried]) -> str:
    """Return the Markdown of a table for each target; a log's own model is marked with *."""
    lines = [
        "Each model was learnt on the first 60 % of a log and is judged on the last 30 % of another, as it came and"
    ]
    lines += ["under the rolling correction that every prediction passes through. * is the log's own model.", ""]
    for target in dict.fromkeys(r.target for r in results):
        mine = [r for r in results if r.target == target]
        names = list(mine[0].as_is)
        lines += [f"**{target}**", "", "| judged on | learnt on | jobs | " + " | ".join(names) + " |"]
        lines += ["|---|---|---:|" + "---:|" * len(names)]
        lines += [_line(result, names) for result in mine]
        lines += [""]
    return "\n".join(lines)


def _line(result: Carried, names: Sequence[str]) -> str:
    mark = " *" if result.learnt_on == result.judged_on else ""
    cells = [f"{result.as_is[name]:.3f} → {result.rolled[name]:.3f}" for name in names]
    return f"| {result.judged_on} | {result.learnt_on}{mark} | {result.rows} | " + " | ".join(cells) + " |"


def _learn(target: str, log: Log, seed: int, threads: int) -> Fitted | None:
    split = split_by_time(log.table)
    try:
        return fit(BY_NAME[target], log.table, log.vectors, split.train, split.validation, seed=seed, threads=threads)
    except NoDataError:
        return None


def _baseline(bundle: Bundle, target: str, log: Log) -> tuple[TargetModel, NDArray[np.float32]]:
    return bundle.model(target), bundle.raw(target, log.vectors)


def _judged(learnt_on: str, log: Log, model: TargetModel, raw: NDArray[np.float32]) -> Carried:
    """Judge on the test rows; the correction begins with the validation rows, as it would at the site."""
    split = split_by_time(log.table)
    later = np.zeros(len(log.table), dtype=np.bool_)
    later[int(split.validation[0]) if len(split.validation) else int(split.test[0]) :] = True
    y = labels(model.target, log.table)
    test = split.test[np.isfinite(y[split.test])]
    busy = busy_users(log.vectors, our_features().names)
    rolled = roll(log.table, model, raw, scored=later, busy=busy).values
    as_is = np.full(rolled.shape, np.nan)
    as_is[test] = static(model, log.table.take(test), raw[test])
    figures = [_figures(model, log.table, y, values, test) for values in (as_is, rolled)]
    return Carried(learnt_on, log.name, model.target, len(test), *figures)


def _figures(
    model: TargetModel, table: JobTable, y: NDArray[np.float64], values: NDArray[np.float64], rows: Rows
) -> dict[str, float]:
    if not model.quantiles:
        return {"AP": average_precision(y[rows], values[rows]), "ECE": ece(y[rows], values[rows])}
    limit = values[rows, model.quantiles.index(QUANTILE)]
    cpus = np.where(np.isfinite(table.cpus[rows]), table.cpus[rows], 1.0)
    return {
        f"under-estimated at q{QUANTILE}": under_rate(y[rows], limit),
        "reserved/used": reserved_over_used(y[rows], limit, cpus) if len(rows) else _NAN,
    }
