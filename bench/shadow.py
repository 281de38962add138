"""Figure: CPU of scoring a model on trial at a submission, and of comparing its outcomes at the hub.

The challenger has the shipped recipe's tree counts and is learnt from made-up rows, as in `bench.predict`. CPU time of
the thread is counted, so that a busy host changes little. Prints a table, then one line of JSON.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from bench.predict import ROWS, learn, made_up, manifest_of
from gpuwaste.advice.predict.bundle import BASELINE, load_bundle
from gpuwaste.advice.predict.champion import ShadowModel
from gpuwaste.advice.predict.model_comparison import compare
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.advice.predict.targets import TARGETS
from gpuwaste.advisor.advisor_models import Question, ShadowScoring
from gpuwaste.core.clock import SystemClock
from gpuwaste.models.bundle_export import write_bundle

WANTED: Final = frozenset({"failure", "timeout"})  # of the policy of a fresh install, for jobs without GPUs
PAIRS: Final = 50_000
USERS: Final = 500
_CALLS: Final = 2000
_TOGETHER: Final = 16


def main() -> int:
    """Learn, score, compare."""
    rows = made_up(ROWS)
    boosters = {target.name: learn(target, rows, 0) for target in TARGETS if target.name in WANTED}
    whole = manifest_of()
    manifest = replace(whole, targets=tuple(model for model in whole.targets if model.target in WANTED))
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        path = Path(folder) / "bench"
        write_bundle(path, manifest=manifest, boosters=boosters, vectors=rows)
        models = tuple(ShadowModel(b, Rolling(b.manifest, b.hash)) for b in map(load_bundle, (path, BASELINE)))
        shadow = ShadowScoring(SystemClock(), share=1000.0)
        facts: dict[str, float] = {}
        for name, chosen in (("challenger", models[:1]), ("challenger_and_baseline", models)):
            shadow.models = chosen
            for together in (1, _TOGETHER):
                facts[f"{name}_{together}_us"] = round(_each_us(shadow, rows, together), 1)
    facts["compare_s"] = round(_cpu_s(lambda: compare(*_pairs())), 2)
    facts["load_average"] = round(os.getloadavg()[0], 1)
    for name, value in facts.items():
        print(f"{name:<36}{value:>12}")
    print(json.dumps({"bench": "shadow", "targets": sorted(WANTED), "pairs": PAIRS, **facts}))
    return 0


def _each_us(shadow: ShadowScoring, rows: np.ndarray, together: int) -> float:
    """Return the median CPU time of a submission, so many of them at once."""
    now = SystemClock().mono_us()
    taken = []
    for call in range(_CALLS):
        vectors = rows[(call * together) % (len(rows) - together) :][:together]
        asked = [Question(vector, WANTED, now, now + 10**12) for vector in vectors]
        taken.append(_cpu_s(partial(shadow.scores, asked)) / together)
    assert shadow.counts["scored"] == sum(shadow.counts.values())  # noqa: S101 else it is no figure
    return float(np.median(taken)) * 1e6


def _pairs() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = (rng.random(PAIRS) < 0.2).astype(np.float64)
    first, second = (np.clip(0.2 * y + 0.5 * rng.random(PAIRS), 0, 1) for _ in range(2))
    return y, first, second, rng.integers(0, USERS, PAIRS)


def _cpu_s(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


if __name__ == "__main__":
    raise SystemExit(main())
