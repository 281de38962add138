"""Figure: inference of all targets for one job: latency, load time, memory of a bundle, beside XGBoost itself.

Boosters of every target, at the tree counts of the shipped recipe (or --rounds), are learnt from made-up rows of this
version's features, exported through the parity gate, and asked one row at a time in one thread, a fresh row each call.
The alternatives are what a program without ONNX Runtime would call. Prints a table, then one line of JSON.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import xgboost
from numpy.typing import NDArray

from gpuwaste.advice.predict.bundle import Bundle, load_bundle, our_features
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.advice.predict.targets import TARGETS, Target
from gpuwaste.models.bundle_export import write_bundle
from gpuwaste.models.target_fit import DEFAULTS, columns, grow, objectives

TARGET_P99_US: Final = 150
ROWS: Final = 8_000
Rows = NDArray[np.float32]
# A process of its own, so that what training brought does not count.
_MEMORY: Final = """
import sys, time
from pathlib import Path
import psutil
import numpy
import gpuwaste.advice.predict.onnx_runtime
import gpuwaste.advice.predict.bundle as bundle
own = psutil.Process()
before, began = own.memory_info().rss, time.perf_counter()
bundle.load_bundle(Path(sys.argv[1]))
print(time.perf_counter() - began, own.memory_info().rss, own.memory_info().rss - before)
"""


def main() -> int:
    """Learn, export, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=0, help="trees of each booster (default: the recipe's)")
    options = parser.parse_args()
    rows = made_up(ROWS)
    boosters = {target.name: learn(target, rows, options.rounds) for target in TARGETS}
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        path = Path(folder) / "bench"
        began = time.perf_counter()
        parity = write_bundle(path, manifest=manifest_of(), boosters=boosters, vectors=rows).parity
        gate_s = time.perf_counter() - began
        size_mb = sum(file.stat().st_size for file in path.iterdir()) / 1e6
        load_s, rss, bundle_rss = map(float, run([sys.executable, "-c", _MEMORY, str(path)]).split())
        figures = measure(load_bundle(path), boosters, rows, options.calls)
    trees = sum(b.num_boosted_rounds() for group in boosters.values() for b in group)
    facts = {
        "trees": trees,
        "features": rows.shape[1],
        "bundle_mb": round(size_mb, 2),
        "load_ms": round(load_s * 1000),
        "rss_mb": round(rss / 1e6),
        "bundle_rss_mb": round(bundle_rss / 1e6),
        "export_s": round(gate_s, 1),
        "gate_rows": sum(p.rows for p in parity.values()),
        "flips": sum(p.flips for p in parity.values()),
        "max_difference": max(p.max_difference for p in parity.values()),
        "load_average": round(os.getloadavg()[0], 1),
    }
    for name, value in facts.items():
        print(f"{name:<20}{value:>12}")
    print(json.dumps({"bench": "predict", "target_p99_us": TARGET_P99_US, **facts, **figures}))
    return 0


def made_up(n: int) -> Rows:
    """Return rows of this version's width: a third unknown, the others of several scales."""
    rng = np.random.default_rng(1)
    width = len(our_features().names)
    rows = (rng.normal(size=(n, width)) * 10.0 ** rng.integers(0, 5, width)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.33] = np.nan
    return rows


def learn(target: Target, rows: Rows, rounds: int) -> tuple[xgboost.Booster, ...]:
    """Grow one target's boosters by the shipped recipe; the label hangs on ten columns and on chance."""
    rng = np.random.default_rng(2)
    chosen = rng.choice(rows.shape[1], 10, replace=False)
    signal = np.sign(np.nan_to_num(rows[:, chosen])).sum(axis=1) + rng.normal(size=len(rows)) * 2
    y = (signal > 2).astype(np.float32) if target.kind == "probability" else 7 + signal.astype(np.float32)
    recipe = DEFAULTS[target.kind]
    base = {**recipe.params, "nthread": 1, "seed": 1, "tree_method": "hist"}
    data = columns(rows, y, base)
    return tuple(grow(data, {**base, **o}, rounds or recipe.rounds) for o in objectives(target))


def manifest_of() -> Manifest:
    """Return the manifest of a bundle of every target."""
    ours = our_features()
    models = tuple(
        TargetModel(t.name, "", t.quantiles, thresholds={} if t.quantiles else {"warn": 0.3, "reject": 0.8})
        for t in TARGETS
    )
    names, nothing = ours.names, (None,) * len(ours.names)
    return Manifest(
        name="bench", origin="site", cluster="", created_utc=0, feature_version=ours.version, feature_hash=ours.hash,
        features=names, label_rule="made up", end_rule="accounting", window=(0, 0), rows=ROWS, targets=models,
        left_out={}, references=nothing, files={},
    )  # fmt: skip


def measure(
    bundle: Bundle, boosters: Mapping[str, Sequence[xgboost.Booster]], rows: Rows, calls: int
) -> dict[str, dict[str, float]]:
    """Time one row of all targets by each way; a slow way gets fewer calls."""
    every = [booster for group in boosters.values() for booster in group]
    for booster in every:
        booster.set_param({"nthread": 1})
    few = max(200, calls // 20)
    ways: dict[str, tuple[Callable[[Rows], None], int]] = {
        "onnx_all_targets": (asking(bundle, bundle.targets), calls),
        "onnx_and_rolling": (corrected(bundle), calls),
        "xgboost_inplace": (inplace(every), few),
        "xgboost_dmatrix": (by_matrix(every), few),
    }
    ways |= {f"onnx_{target}": (asking(bundle, (target,)), calls // 4) for target in bundle.targets}
    print(f"{'one row, us':<24}{'p50':>9}{'p99':>9}{'max':>9}{'cpu p50':>9}{'cpu p99':>9}{'calls':>8}")
    return {name: timed(name, way, rows, count) for name, (way, count) in ways.items()}


def asking(bundle: Bundle, targets: Sequence[str]) -> Callable[[Rows], None]:
    """Ask the bundle for these targets."""

    def ask(row: Rows) -> None:
        for target in targets:
            bundle.raw(target, row)

    return ask


def corrected(bundle: Bundle) -> Callable[[Rows], None]:
    """Ask the bundle for every target and correct what it says."""
    rolling, models = Rolling(bundle.manifest), bundle.manifest.targets

    def ask(row: Rows) -> None:
        for model in models:
            raw = bundle.raw(model.target, row)[0].tolist()
            if model.quantiles:
                rolling.quantiles(model.target, raw, 3600.0)
            else:
                rolling.probability(model.target, raw[0])

    return ask


def inplace(boosters: Sequence[xgboost.Booster]) -> Callable[[Rows], None]:
    """Ask XGBoost without a matrix of its own."""

    def ask(row: Rows) -> None:
        for booster in boosters:
            booster.inplace_predict(row)

    return ask


def by_matrix(boosters: Sequence[xgboost.Booster]) -> Callable[[Rows], None]:
    """Ask XGBoost in the usual way."""

    def ask(row: Rows) -> None:
        data = xgboost.DMatrix(row, nthread=1)
        for booster in boosters:
            booster.predict(data)

    return ask


def timed(name: str, ask: Callable[[Rows], None], rows: Rows, calls: int) -> dict[str, float]:
    """Return percentiles in microseconds, of the clock and of the thread's own processor time.

    The second leaves out what other processes took, on a machine that is not quiet. Garbage is collected before, not
    during.
    """
    clock, own = np.empty(calls), np.empty(calls)
    for i in range(200):
        ask(rows[i : i + 1])
    gc.collect()
    gc.disable()
    for i in range(calls):
        row = rows[i % len(rows)][None]
        used, began = time.thread_time_ns(), time.perf_counter_ns()
        ask(row)
        clock[i] = time.perf_counter_ns() - began
        own[i] = time.thread_time_ns() - used
    gc.enable()
    p50, p99, worst = np.percentile(clock, (50, 99, 100)) / 1000
    cpu50, cpu99 = np.percentile(own, (50, 99)) / 1000
    print(f"{name:<24}{p50:9.1f}{p99:9.1f}{worst:9.0f}{cpu50:9.1f}{cpu99:9.1f}{calls:8}", flush=True)
    figures = {"p50_us": p50, "p99_us": p99, "max_us": worst, "cpu_p50_us": cpu50, "cpu_p99_us": cpu99}
    return {key: round(value, 1) for key, value in figures.items()} | {"calls": calls}


def run(words: list[str]) -> str:
    """Run a process and return what it prints."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
