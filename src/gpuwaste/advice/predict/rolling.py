"""What the jobs that ended last say about a bundle: calibration of its probabilities, shifts of its quantiles.

One object for online and offline: `roll.py` drives it over a whole table in time order, the hub and the advisor event
by event. A query costs microseconds; an end a few more, and every hundredth a fit of well under a millisecond.
"""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.conformal import Shifts
from gpuwaste.advice.predict.manifest import Manifest
from gpuwaste.advice.predict.recalibration import Recalibration
from gpuwaste.core.errors import ModelError, ParseError, StoreError
from gpuwaste.core.files import write_whole
from gpuwaste.jobs.history.array_file import read_arrays

_T = TypeVar("_T")
_FORM: Final = 1
_IN_SYSTEM: Final = ("user_queued", "user_running")
_FLOORS: Final = {"gpus_needed": 0.5}  # log needs a positive number; half a GPU stands for none, as in training
_FLOOR: Final = 1.0


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
