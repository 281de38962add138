"""Running totals and rates over events that are sorted by key."""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpuwaste.jobs.history.recurrences import Rates, after_end, after_ends
from gpuwaste.jobs.history.table import Floats

Places = NDArray[np.int64]
_FEW: Final = 48  # keys: fewer go one by one, where an array's call costs more than it saves


def accumulate(first: Any, counts: Any, begin: Floats, failed: Floats, log_run: Floats) -> Floats:
    """Return rates and streak [ends, 5] after each end of ends sorted by key.

    Key i has `counts[i]` ends from `first[i]` on and starts with `begin[i]`. One step takes the next end of every key
    that has one; the few keys with the most ends are finished one by one.
    """
    out = np.empty((len(failed), begin.shape[1]))
    keys = np.argsort(-counts, kind="stable")
    left, begins = counts[keys], first[keys]
    now = begin[keys]
    step = 0
    while (active := int(np.searchsorted(-left, -step, side="left"))) > _FEW:
        ends = begins[:active] + step
        now[:active] = after_ends(now[:active], failed[ends], log_run[ends])
        out[ends] = now[:active]
        step += 1
    for place in range(active):
        ends = slice(int(begins[place]) + step, int(begins[place] + left[place]))
        each = chain.from_iterable(_one_by_one(tuple(now[place].tolist()), failed[ends], log_run[ends]))
        out[ends] = np.fromiter(each, dtype=np.float64).reshape(-1, begin.shape[1])
    return out


def _one_by_one(rates: Rates, failed: Floats, log_run: Floats) -> Iterator[Rates]:
    """Yield rates and streak after each end of one key: no tuple is kept, which halves the time."""
    for bad, run in zip(failed.tolist(), log_run.tolist(), strict=True):
        rates = after_end(*rates, bad, run)
        yield rates


def running_totals(values: NDArray[Any], dtype: type[np.number[Any]]) -> NDArray[Any]:
    """Return running totals over the rows [n + 1, columns], zeros first."""
    totals = np.zeros((len(values) + 1, values.shape[1]), dtype=dtype)
    np.cumsum(values, axis=0, out=totals[1:])
    return totals


def last_marked(marked: NDArray[np.bool_]) -> Places:
    """Return for each place the last marked one up to it, -1 where there is none."""
    return np.maximum.accumulate(np.where(marked, np.arange(len(marked)), -1))
