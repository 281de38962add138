"""What the loads of the study of wrappers make of the correlation of queue time and fair share."""

from typing import Final, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_TEN: Final = 10
_DRAWS: Final = 2000


class Variant(NamedTuple):
    """Loads of one kind: the CPUs of a node that a job holds whole, and what prior usage goes by."""

    name: str
    node_cpus: int
    used_by: str


class Correlation(NamedTuple):
    """Of all loads, and what 90 of 100 draws of ten loads lie between; `slope` is that of priority over fair share."""

    all: float
    low: float
    high: float
    slope: float


def variants(db: duckdb.DuckDBPyConnection) -> list[Variant]:
    """Return the kinds of loads in the view `loads`."""
    found = db.sql("select distinct node_cpus, used_by from loads order by used_by, node_cpus").fetchall()
    return [Variant(_name(*one), *one) for one in found]


def queue_by_share(db: duckdb.DuckDBPyConnection, one: Variant) -> tuple[Floats, Floats]:
    """Return the fair shares, and the mean queue time of all jobs in all loads at each."""
    share, queue, _ = _arrays(db, one)
    return share, queue.mean(axis=(0, 2))


def correlations_of_ten(db: duckdb.DuckDBPyConnection, one: Variant) -> Correlation:
    """Return the correlation of fair share and the mean queue time over the loads, as the paper's Table 4."""
    share, queue, priority = _arrays(db, one)
    each = np.repeat(share, queue.shape[2])

    def of(loads: Floats) -> float:
        return float(np.corrcoef(each, loads.mean(axis=0).ravel())[0, 1])

    rng = np.random.default_rng(1)
    drawn = [of(queue[rng.integers(0, len(queue), _TEN)]) for _ in range(_DRAWS)]
    low, high = np.percentile(drawn, [5, 95])
    slope = np.polyfit(each, priority.mean(axis=0).ravel(), 1)[0]
    return Correlation(of(queue), float(low), float(high), float(slope))


def _arrays(db: duckdb.DuckDBPyConnection, one: Variant) -> tuple[Floats, Floats, Floats]:
    """Return fair shares [S], and queue times and priorities [loads, S, jobs]."""
    found = db.execute(
        """select seed, fair_share, queue_s, priority from loads where node_cpus = ? and used_by = ?
        order by seed, fair_share, run_s, cpus_each""",
        [one.node_cpus, one.used_by],
    ).fetchnumpy()
    share = np.unique(found["fair_share"])
    shape = (len(np.unique(found["seed"])), len(share), -1)
    queue, priority = (found[key].astype(np.float64).reshape(shape) for key in ("queue_s", "priority"))
    return share, queue, priority


def _name(node_cpus: int, used_by: str) -> str:
    return f"{'shared CPUs' if node_cpus == 1 else 'whole nodes'}, {used_by.replace('cpu_', 'CPU ')}"
