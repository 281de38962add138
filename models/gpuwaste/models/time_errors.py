"""Errors of a time model: on programs like those measured, and on families of which 0, 5 or 20 % were measured.

Every prediction is of a program that neither the roofline, nor the kernel, nor the intervals had seen. A family's 5 %
are at least one program, so small families have a larger share measured.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.estimate.roofline import work_of
from gpuwaste.estimate.time_card import TimeFigures
from gpuwaste.estimate.time_model import TimeModel
from gpuwaste.models.time_fit import Measurements, fit_model

Rows = NDArray[np.int64]
FOLDS: Final = 5
FAMILY_FOLDS: Final = 10
SHARES: Final = (0.0, 0.05, 0.2)  # of an unseen family that are measured anyway, as in the paper's table
SEEN: Final = "seen"


@dataclass(frozen=True, slots=True)
class TimesSplit:
    """Rows to learn from and rows to predict; splits of one `group` share a kernel, found without any of them."""

    case: str
    group: int
    learnt: Rows
    asked: Rows


def case_of(share: float) -> str:
    """Return the name of a case of unseen families."""
    return f"unseen, {share:.0%} measured"


def splits(rows: Measurements, seed: int) -> Iterator[TimesSplit]:
    """Yield every split, those of one group consecutively, the one with the fewest learnt rows first."""
    rng = np.random.default_rng(seed)
    everything = np.arange(len(rows))
    for group, asked in enumerate(np.array_split(rng.permutation(len(rows)), FOLDS)):
        yield TimesSplit(SEEN, group, np.setdiff1d(everything, asked), np.sort(asked))
    families = np.array(rows.families)
    for group, names in enumerate(np.array_split(rng.permutation(sorted(set(rows.families))), FAMILY_FOLDS), FOLDS):
        inside = np.flatnonzero(np.isin(families, names))
        order = [rng.permutation(np.flatnonzero(families == name)) for name in names]
        for share in SHARES if len(names) else ():
            known = [each[: int(np.ceil(share * len(each))) if len(each) > 1 else 0] for each in order]
            measured = np.concatenate([*known, np.zeros(0, dtype=np.int64)]).astype(np.int64)
            asked = np.setdiff1d(inside, measured)
            yield TimesSplit(case_of(share), group, np.setdiff1d(everything, asked), asked)


@dataclass(frozen=True, slots=True)
class Said:
    """Predictions of one case and the measured times, seconds; `inside`: whether the 90 % interval contains it."""

    rows: Rows
    true_s: NDArray[np.float64]
    said_s: NDArray[np.float64]
    additive_s: NDArray[np.float64]
    inside: NDArray[np.bool_]


def judge(
    gpu: str, rows: Measurements, *, seed: int = 1, step: Callable[[], object] = lambda: None
) -> tuple[list[TimeFigures], dict[str, Said]]:
    """Return the figures of each case and their data; `step` is called after each split."""
    found: dict[str, list[Said]] = {}
    model: TimeModel | None = None
    group = -1
    for split in splits(rows, seed):
        model = fit_model(gpu, rows.take(split.learnt), seed=seed, like=model if split.group == group else None)
        group = split.group
        found.setdefault(split.case, []).append(_said(model, rows, split.asked))
        step()
    whole = {case: _joined(parts) for case, parts in found.items()}
    return [figures(case, said) for case, said in whole.items()], whole


def figures(case: str, said: Said) -> TimeFigures:
    """Return the figures of one case."""
    off = np.abs(said.said_s / said.true_s - 1)
    return TimeFigures(
        case=case,
        programs=len(off),
        additive_mape=float(np.mean(np.abs(said.additive_s / said.true_s - 1))),
        mape=float(off.mean()),
        median=float(np.median(off)),
        p90=float(np.quantile(off, 0.9)),
        coverage=float(said.inside.mean()),
    )


def _said(model: TimeModel, rows: Measurements, asked: Rows) -> Said:
    part = rows.take(asked)
    log_s, sd = model.predict(part.sums, part.families)
    reach = sd * np.array([model.z(family) for family in part.families])
    additive = model.roofline.seconds(work_of(part.sums, model.roofline.keys))
    return Said(asked, part.seconds, np.exp(log_s), additive, np.abs(log_s - np.log(part.seconds)) <= reach)


def _joined(parts: list[Said]) -> Said:
    return Said(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.true_s for part in parts]),
        np.concatenate([part.said_s for part in parts]),
        np.concatenate([part.additive_s for part in parts]),
        np.concatenate([part.inside for part in parts]),
    )


def split_count(rows: Measurements) -> int:
    """Return how many times `judge` fits."""
    return FOLDS + min(FAMILY_FOLDS, len(set(rows.families))) * len(SHARES)
