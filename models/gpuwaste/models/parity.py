"""The gate of every export: XGBoost and ONNX Runtime give the same numbers on at least 10,000 rows and on the edges.

A conversion can go wrong silently: zero read as missing, a split that takes the wrong side for an equal value. So
besides real rows the gate compares rows without any value, rows full of zeros or of values that training never saw, and
for each feature rows exactly on the trees' thresholds, one float32 below and one above.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import xgboost
from numpy.typing import NDArray

from gpuwaste.advice.predict.manifest import TargetModel
from gpuwaste.advice.predict.onnx_session import Session
from gpuwaste.advice.renewal.card_types import Parity
from gpuwaste.core.errors import ModelError
from gpuwaste.models.target_fit import calibrated

ROWS: Final = 10_000
EDGE_ROWS: Final = 2_000  # of each kind: on a threshold, below, above
MAX_DIFFERENCE: Final = 1e-5  # of a probability
MAX_RELATIVE: Final = 1e-5  # of a log quantile, in relation to at least 1
SETTLE: Final = 0.002  # how far a threshold may be moved, in probability
Rows = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ParityGate:
    """The rows of one target's gate, with XGBoost's output for them: float32 [n, 1 or q]."""

    rows: Rows
    real: int
    edges: int
    trees: Rows


def gate_of(boosters: Sequence[xgboost.Booster], vectors: Rows, seed: int = 1) -> ParityGate:
    """Draw the rows: real ones, synthetic ones up to ROWS, then the edges."""
    rng = np.random.default_rng(seed)
    real = vectors[np.sort(rng.permutation(len(vectors))[:ROWS])]
    edges = edge_rows(boosters, vectors, rng)
    rows = np.concatenate([real, synthetic_rows(vectors, ROWS - len(real), rng), edges])
    trees = np.column_stack([booster.inplace_predict(rows) for booster in boosters]).astype(np.float32)
    return ParityGate(rows, len(real), len(edges), trees)


def settled(model: TargetModel, gate: ParityGate) -> Mapping[str, float]:
    """Return the thresholds, each moved into the widest gap between two rows' probabilities within SETTLE of it.

    A threshold is the probability of some row: that row would change sides with the last bit of the arithmetic.
    """
    p = np.unique(calibrated(gate.trees[:, 0], model.calibration)) if model.thresholds else np.empty(0)
    moved = {}
    for name, threshold in model.thresholds.items():
        near = p[np.abs(p - threshold) <= SETTLE]
        if len(near) > 1:
            at = int(np.argmax(np.diff(near)))
            moved[name] = float((near[at] + near[at + 1]) / 2)
        else:
            moved[name] = threshold - (SETTLE / 2 if len(near) else 0.0)
    return {name: min(max(value, 0.0), 1.0) for name, value in moved.items()}


def check(model: TargetModel, session: Session, gate: ParityGate) -> Parity:
    """Compare a target's boosters with its graph. Raises ModelError with the row where they differ."""
    trees, rows = gate.trees, gate.rows
    graph = session.run(rows)
    scale = 1.0 if not model.quantiles else np.maximum(1.0, np.abs(trees))
    gap = np.abs(graph.astype(np.float64) - trees) / scale
    gap[~np.isfinite(gap)] = np.inf
    flips = _flips(model, trees, graph)
    worst = int(np.argmax(gap.max(axis=1)))
    limit = MAX_RELATIVE if model.quantiles else MAX_DIFFERENCE
    if flips.any() or gap[worst].max() > limit:
        row = int(np.flatnonzero(flips)[0]) if flips.any() else worst
        raise ModelError(
            f"{session.where}: not exported: {int(flips.sum())} flips, largest difference {gap.max():.3g} in "
            f"{len(rows)} rows; {_kind(row, gate)} row {row}: XGBoost says {trees[row].tolist()}, ONNX "
            f"{graph[row].tolist()}: keep the champion and report the versions of xgboost and onnxmltools"
        )
    return Parity(len(rows), gate.real, gate.edges, float(gap.max()), 0)


def synthetic_rows(vectors: Rows, count: int, rng: np.random.Generator) -> Rows:
    """Return rows whose columns are drawn independently: from the column's range, its values, or unknown."""
    count, width = max(0, count), vectors.shape[1]
    low, high = _range(vectors)
    drawn = rng.uniform(low, high, size=(count, width)).astype(np.float32)
    if len(vectors):
        seen = vectors[rng.integers(len(vectors), size=(count, width)), np.arange(width)]
        drawn = np.where(rng.random((count, width)) < 0.5, seen, drawn)  # noqa: PLR2004 one half each
    drawn[rng.random((count, width)) < 0.1] = np.nan  # noqa: PLR2004 a tenth is unknown
    return drawn


def edge_rows(boosters: Sequence[xgboost.Booster], vectors: Rows, rng: np.random.Generator) -> Rows:
    """Return rows of unknowns, zeros and values never seen, and rows on, below and above the trees' thresholds."""
    low, high = _range(vectors)
    width = vectors.shape[1]
    ones = np.ones(width, np.float32)
    huge = np.float32(3e38)
    fixed = np.stack([np.nan * ones, 0 * ones, -0.0 * ones, -ones, ones, low - 1, high + 1, -huge * ones, huge * ones])
    splits = thresholds(boosters)
    rows = [fixed.astype(np.float32)]
    base = synthetic_rows(vectors, EDGE_ROWS, rng)
    on = base.copy()
    for column, values in splits.items():
        on[:, column] = rng.choice(values, size=len(on))
    columns = np.array(sorted(splits), dtype=np.intp)
    for toward in (None, -np.inf, np.inf):
        moved = on.copy()
        if toward is not None and len(columns):
            moved[:, columns] = np.nextafter(on[:, columns], np.float32(toward))
        rows.append(moved)
    rows.extend(_alone(base, splits, rng))
    return np.concatenate(rows)


def thresholds(boosters: Sequence[xgboost.Booster]) -> Mapping[int, Rows]:
    """Return each feature's thresholds in the trees, float32, by column."""
    found: dict[int, list[NDArray[np.float64]]] = {}
    for booster in boosters:
        frame = booster.get_dump(dump_format="json")
        for column, value in _splits(frame):
            found.setdefault(column, []).append(np.array([value]))
    return {column: np.unique(np.concatenate(v).astype(np.float32)) for column, v in sorted(found.items())}


def _splits(trees: Sequence[str]) -> Sequence[tuple[int, float]]:
    found: list[tuple[int, float]] = []
    stack = [json.loads(tree) for tree in trees]
    while stack:
        node = stack.pop()
        if "children" in node:
            found.append((int(str(node["split"]).removeprefix("f")), float(node["split_condition"])))
            stack.extend(node["children"])
    return found


def _alone(base: Rows, splits: Mapping[int, Rows], rng: np.random.Generator) -> list[Rows]:
    """Return real-looking rows with a single column on one of its thresholds."""
    if not splits or not len(base):
        return []
    columns = rng.choice(np.array(sorted(splits)), size=len(base))
    rows = base.copy()
    for i, column in enumerate(columns.tolist()):
        rows[i, column] = rng.choice(splits[column])
    return [rows]


def _range(vectors: Rows) -> tuple[Rows, Rows]:
    """Return the lowest and highest known value of each column; 0 and 1 where none is known."""
    known = np.isfinite(vectors)
    low = np.where(known, vectors, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, vectors, -np.inf).max(axis=0, initial=-np.inf)
    empty = low > high
    return np.where(empty, 0, low).astype(np.float32), np.where(empty, 1, high).astype(np.float32)


def _flips(model: TargetModel, trees: Rows, graph: Rows) -> NDArray[np.bool_]:
    """Return the rows that a threshold of the manifest puts on different sides."""
    flips = np.zeros(len(trees), dtype=bool)
    if not model.thresholds:
        return flips
    sides = [calibrated(raw[:, 0], model.calibration) for raw in (trees, graph)]
    for threshold in model.thresholds.values():
        flips |= (sides[0] >= threshold) != (sides[1] >= threshold)
    return flips


def _kind(row: int, gate: ParityGate) -> str:
    return "real" if row < gate.real else "edge" if row >= len(gate.rows) - gate.edges else "synthetic"
