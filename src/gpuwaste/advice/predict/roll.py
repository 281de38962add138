"""The rolling corrections over a whole table in time order: scores at submission, observations at the end."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.conformal import Shifts
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.advice.predict.rolling import Rolling
from gpuwaste.advice.predict.targets import BY_NAME, labels, request_cap
from gpuwaste.jobs.history.table import ABSENT, Floats, JobTable

END, SUBMIT = 0, 1


@dataclass(frozen=True, slots=True)
class Rolled:
    """`values` is [n] calibrated probabilities, or [n, q] quantiles in the target's unit; `rolling` as after it."""

    values: Floats
    rolling: Rolling


def roll(
    table: JobTable,
    model: TargetModel,
    raw: NDArray[np.float32],
    *,
    rolling: Rolling | None = None,
    scored: NDArray[np.bool_] | None = None,
    busy: NDArray[np.bool_] | None = None,
) -> Rolled:
    """Correct `raw` (float32 [n, 1 or q], a row for each of the table's) as it would have been done at each submission.

    `model` gives the target, its quantiles and where the corrections begin. Only rows where `scored` holds (default:
    all) are scored and observed; the others are NaN: the training rows, whose raw numbers flatter. A job is observed
    at its end, after the submissions of that second where it was itself submitted in it. `busy` [n] is what
    rolling.busy_users says of the vectors.
    """
    own = rolling or Rolling(_alone(model))
    rows = np.arange(len(table)) if scored is None else np.flatnonzero(scored)
    label, caps = labels(model.target, table), request_cap(model.target, table)
    width = len(model.quantiles)
    values = np.full((len(table), width) if width else len(table), np.nan)
    listed = raw.tolist()
    others = [False] * len(table) if busy is None else busy.tolist()
    for kind, row in told(table, rows, label):
        if kind == END:
            own.observe(model.target, listed[row], float(label[row]), busy=others[row])
        elif width:
            values[row] = own.quantiles(model.target, listed[row], _known(caps[row]), busy=others[row])
        else:
            values[row] = own.probability(model.target, listed[row][0])
    return Rolled(values, own)


def static(model: TargetModel, table: JobTable, raw: NDArray[np.float32]) -> Floats:
    """Return what the bundle's own calibration or shifts give, never corrected: what `roll` is compared with."""
    own, caps = Rolling(_alone(model)), request_cap(model.target, table)
    if not model.quantiles:
        return np.array([own.probability(model.target, float(r)) for r in raw[:, 0]])
    shifts = Shifts(model.quantiles, model.shifts)
    values = [shifts.apply(row, _known(cap)) for row, cap in zip(raw.tolist(), caps, strict=True)]
    return np.array(values, dtype=np.float64).reshape(-1, len(model.quantiles))


def _known(cap: float) -> float | None:
    return None if np.isnan(cap) else float(cap)


def _alone(model: TargetModel) -> Manifest:
    """Return a manifest of this target alone."""
    if model.target not in BY_NAME:
        raise KeyError(model.target)
    return Manifest("", "site", "", 0, 0, "", (), "", "", (0, 0), 0, (model,), {}, (), {})


def told(table: JobTable, rows: NDArray[np.intp], label: Floats) -> list[tuple[int, int]]:
    """Return (kind, row) of the rows' submissions, and of the ends of those with a label, in the order of time.

    At equal seconds ends come first, but for a run of no length, which ends after its own submission.
    """
    ended = rows[(table.end[rows] != ABSENT) & np.isfinite(label[rows])]
    own_second = table.end[ended] <= table.submit[ended]
    at = np.concatenate([table.submit[rows], np.maximum(table.end[ended], table.submit[ended])])
    rank = np.concatenate([np.full(len(rows), 1), np.where(own_second, 2, 0)])
    kind = np.concatenate([np.full(len(rows), SUBMIT), np.full(len(ended), END)])
    row = np.concatenate([rows, ended])
    order = np.lexsort((row, rank, at))
    return list(zip(kind[order].tolist(), row[order].tolist(), strict=True))
