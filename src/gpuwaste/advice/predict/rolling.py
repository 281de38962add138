"""What the jobs that ended last say about a bundle: calibration of its probabilities, shifts of its quantiles.

One object for online and offline: a whole table is replayed in time order, the hub and the advisor add event by event.
A query costs microseconds; an end a few more, and every hundredth a fit of well under a millisecond.
"""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.conformal_shifts import Shifts
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.advice.predict.recalibration import Recalibration
from gpuwaste.advice.predict.targets import BY_NAME, labels, request_cap
from gpuwaste.core.errors import ModelError, ParseError, StoreError
from gpuwaste.core.files import write_whole
from gpuwaste.jobs.history.array_file import read_arrays
from gpuwaste.jobs.history.job_table import ABSENT, Floats, JobTable

_T = TypeVar("_T")
_FORM: Final = 1
_IN_SYSTEM: Final = ("user_queued", "user_running")
_FLOORS: Final = {"gpus_needed": 0.5}  # log needs a positive number; half a GPU stands for none, as in training
_FLOOR: Final = 1.0
END, SUBMIT = 0, 1


class Rolling:
    """Corrections of every target of one bundle. Not safe across threads: one writer, who also asks."""

    def __init__(self, manifest: Manifest, bundle_hash: str = "") -> None:
        self.bundle_hash = bundle_hash
        models = manifest.targets
        self._probabilities = {m.target: Recalibration(m.calibration) for m in models if not m.quantiles}
        self._quantiles = {m.target: Shifts(m.quantiles, m.shifts) for m in models if m.quantiles}

    def probability(self, target: str, raw: float) -> float:
        """Return the calibrated probability of Bundle.raw's number. Raises ModelError for no such target."""
        return _of(self._probabilities, target).apply(raw)

    def quantiles(
        self, target: str, raw: Sequence[float], cap: float | None = None, *, busy: bool = False
    ) -> list[float]:
        """Return quantiles in the target's unit from Bundle.raw's row; `cap` is what the job asked for, if it did.

        `busy` is what `busy_users` says of the vector.
        """
        return _of(self._quantiles, target).apply(raw, cap, busy=busy)

    def observe(self, target: str, raw: Sequence[float], label: float, *, busy: bool = False) -> None:
        """Take a job's end: Bundle.raw's row and `busy` as at its submission, and its label (targets.labels).

        A label of NaN is none and changes nothing.
        """
        if math.isnan(label):
            return
        if target in self._probabilities:
            self._probabilities[target].observe(float(raw[0]), label)
        else:
            _of(self._quantiles, target).observe(raw, math.log(max(label, _FLOORS.get(target, _FLOOR))), busy=busy)

    def seen(self, target: str) -> int:
        """Return how many ended jobs stand behind a target's correction."""
        return len(self._probabilities[target] if target in self._probabilities else _of(self._quantiles, target))

    def save(self, path: Path) -> None:
        """Write the windows, whole or not at all. Raises StoreError."""
        arrays = {f"p.{name}": r.pack() for name, r in self._probabilities.items()}
        arrays |= {f"since.{name}": np.array(r.since) for name, r in self._probabilities.items()}
        arrays |= {f"q.{name}": s.pack() for name, s in self._quantiles.items()}
        stream = io.BytesIO()
        np.savez(stream, form=np.array(_FORM), bundle=np.array(self.bundle_hash), **arrays)  # type: ignore[arg-type]
        try:
            write_whole(path, stream.getvalue())
        except OSError as error:
            raise StoreError(
                f"{path}: cannot be written: {error.strerror}: check free space and permissions"
            ) from error

    @classmethod
    def load(cls, path: Path, manifest: Manifest, bundle_hash: str = "") -> Self:
        """Read what `save` wrote for the same bundle.

        Raises StoreError where it cannot be read, ParseError where it is corrupt or another bundle's: begin anew.
        """
        rolling = cls(manifest, bundle_hash)
        try:
            data = read_arrays(path.read_bytes())
            ours = int(data["form"]) == _FORM and str(data["bundle"]) == bundle_hash
            for name, recalibration in rolling._probabilities.items() if ours else ():
                recalibration.unpack(data[f"p.{name}"], int(data[f"since.{name}"]))
            for name, shifts in rolling._quantiles.items() if ours else ():
                shifts.unpack(data[f"q.{name}"])
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror or error}: corrections start again") from error
        except (ParseError, ValueError, KeyError, TypeError) as error:
            raise ParseError(f"{path}: not a file of corrections: {error}: remove it, they start again") from error
        if not ours:
            raise ParseError(f"{path}: corrections of another bundle: they start again")
        return rolling


def busy_users(vectors: NDArray[np.float32], names: Sequence[str]) -> NDArray[np.bool_]:
    """Tell of each vector [n, F] whether its user had other jobs in the system; `names` are the features'."""
    return np.asarray((vectors[:, busy_columns(names)] > 0).any(axis=1), dtype=np.bool_)


def busy_columns(names: Sequence[str]) -> list[int]:
    """Return the columns of a vector that tell of the user's other jobs in the system."""
    return [names.index(name) for name in _IN_SYSTEM if name in names]


def _of(values: dict[str, _T], target: str) -> _T:
    try:
        return values[target]
    except KeyError:
        raise ModelError(f"target {target}: no correction: the bundle has no model of this target") from None


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
    return Manifest(
        name="", origin="site", cluster="", created_utc=0, feature_version=0, feature_hash="", features=(),
        label_rule="", end_rule="", window=(0, 0), rows=0, targets=(model,), left_out={}, references=(), files={},
    )  # fmt: skip


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
