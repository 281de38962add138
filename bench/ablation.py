"""Figure: what groups of features add to the prediction of failure, on public logs (--seeds 5).

Each line is one set of columns, judged as `gpuwaste model evaluate` does (split by time 60/10/30, rolling correction):
average precision, ECE and F1, each as mean (least to most) over the seeds. Last a line of JSON.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from tools.data.places import own_place, places
from tools.scorecard.logs import LOGS, data_of

from gpuwaste.advice.predict.features import FEATURES, predecessors
from gpuwaste.advice.predict.targets import BY_NAME
from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.models.evaluate.method import EvaluationTask
from gpuwaste.models.prediction_metrics import average_precision, ece, f1
from gpuwaste.models.training_rows import Prepared, prepare, split_by_time

Drop = Callable[[str], bool]
METRICS: Final = ("AP", "ECE", "F1")
_OURS: Final = frozenset(feature.name for feature in predecessors.FEATURES)
_KEYS: Final = tuple(key.name for key in predecessors.KEYS)


def variants() -> dict[str, Drop]:
    """Return what each line leaves out."""
    found: dict[str, Drop] = {"all": lambda _: False, "without last submissions": lambda name: name in _OURS}
    found |= {f"without those of {key}": partial(_is_of, key) for key in _KEYS}
    found["without open, open_age"] = lambda name: name in _OURS and "_open" in name and "likely" not in name
    found["without means over unended"] = lambda name: name.endswith("_likely_open")
    return found


def _is_of(key: str, name: str) -> bool:
    return name in _OURS and name.startswith(f"{key}_")


def scores(data: Prepared, drop: Drop, seeds: Sequence[int]) -> NDArray[np.float64]:
    """Return METRICS [seeds, 3] of trees that do not have some of the columns."""
    left = np.array([drop(feature.name) for feature in FEATURES])
    rows = []
    for seed in seeds:
        task = EvaluationTask(BY_NAME["failure"], data.table, data.vectors, split_by_time(data.table), seed, 1)
        learnt = task.learn_on(np.ascontiguousarray(data.vectors[:, ~left]))
        p, y = learnt.values(task.table, task.busy)[task.test], task.y[task.test]
        rows.append((average_precision(y, p), ece(y, p), f1(y, p >= learnt.fitted.model.thresholds.get("f1", 0.5))))
    return np.array(rows)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=next(places(), own_place()))
    parser.add_argument("--logs", default="CEA-Curie 2012-06/07,CEA-Curie 2012-03/04,KTH-SP2,LLNL-Atlas")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    result: dict[str, dict[str, list[list[float]]]] = {}
    for name in options.logs.split(","):
        log = next(log for log in LOGS if log.name == name.strip())
        data = prepare(swf_table(data_of(log, options.data)).table, log.name)
        result[log.name] = {}
        for text, drop in variants().items():
            found = scores(data, drop, range(1, options.seeds + 1))
            result[log.name][text] = found.round(4).tolist()
            cells = [
                f"{metric} {values.mean():.3f} ({values.min():.3f} to {values.max():.3f})"
                for metric, values in zip(METRICS, found.T, strict=True)
            ]
            print(f"{log.name:<22} {text:<28} {'  '.join(cells)}", flush=True)
    print(json.dumps({"bench": "ablation", "seeds": options.seeds, "scores": result}))


if __name__ == "__main__":
    main()
