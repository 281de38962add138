"""The pictures of the study of wrappers: SVG files with colours for light and dark, in docs/pictures."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

from bench.wrappers_results import queue_by_share, variants
from gpuwaste.core.units import HOUR_S
from gpuwaste.show.chart import Axis, Bins, Chart, Layer, Lines, Role, Series
from gpuwaste.show.charts.draw import chart_file
from gpuwaste.sim.experiments.wrap_dynamic import window

PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures"
MOST_B: Final = 30_000
"""Bytes of one picture: whatever the number of cases, they are counted on a grid or drawn as means."""
_BEGIN: Final = int(datetime(2012, 6, 9, tzinfo=UTC).timestamp())
_ROLES: Final[tuple[Role, ...]] = ("main", "second", "muted", "low")
_COLUMNS, _ROWS = 37, 32  # a column for each 0.025 of fair share, around it
_SHARE: Final = Axis(title="fair share")


def draw(db: duckdb.DuckDBPyConnection, log: Path) -> None:
    """Write every picture. Raises ValueError for one that is too large."""
    for name, chart in {**_of_static(db), "week": _week(db, log), **dict(_of_gains(db))}.items():
        text = chart_file(chart)
        if len(text) > MOST_B:
            raise ValueError(f"{name}: {len(text)} bytes, more than {MOST_B}")
        (PICTURES / f"wrappers-{name}.svg").write_text(text)


def _of_static(db: duckdb.DuckDBPyConnection) -> dict[str, Chart]:
    share, queue = (
        db.sql("select fair_share, queue_s from static").fetchnumpy()[key] for key in ("fair_share", "queue_s")
    )
    x_edges, y_edges = (
        np.linspace(0.0375, 0.9625, _COLUMNS + 1),
        np.linspace(0, max(1.0, float(queue.max())), _ROWS + 1),
    )
    counts = np.histogram2d(queue, share, bins=(y_edges, x_edges))[0].astype(int)
    means = "select fair_share, avg(queue_s) queue from static group by fair_share, run_s, cpus_each"
    found = db.sql(f"select corr(fair_share, queue) from ({means})").fetchall()[0][0]  # noqa: S608 texts of ours
    scatter = Bins(
        title=f"Queue time against fair share, each job in each load (correlation of the means {found:.2f})",
        x=_SHARE,
        y=Axis(title="queue time", unit="s"),
        x_edges=x_edges.tolist(),
        y_edges=y_edges.tolist(),
        layers=[Layer(name="jobs", role="main", counts=counts.ravel().tolist())],
    )
    names = variants(db)
    curves = [queue_by_share(db, one) for one in names]
    lines = Lines(
        title="Mean queue time by fair share, for each kind of loads",
        x=_SHARE,
        y=Axis(title="mean queue time", unit="s"),
        at=curves[0][0].tolist(),
        series=[
            Series(name=one.name, role=role, y=mean.tolist())
            for one, role, (_, mean) in zip(names, _ROLES, curves, strict=False)
        ],
    )
    return {"queue": scatter, "loads": lines}


def _of_gains(db: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, Chart]]:
    """Give the gain of the vertical wrapper by fair share, a picture for each pause between two jobs."""
    for (pause,) in db.sql("select distinct notice_s from dynamic order by 1").fetchall():
        found = db.execute(
            """select fair_share, 100 * avg(gain), 100 * median(gain), 100 * min(gain), 100 * max(gain) from dynamic
            where wrapper = 'vertical' and members = 1 and notice_s = ? group by 1 order by 1""",
            [pause],
        ).fetchall()
        share, mean, median, least, most = (list(column) for column in zip(*found, strict=True))
        yield (
            f"gain-{pause}",
            Lines(
                title=f"Gain of one job over single jobs that are submitted {pause} s after the one before has ended",
                x=_SHARE,
                y=Axis(title="gain", unit="%"),
                at=share,
                series=[Series(name="mean", role="main", y=mean), Series(name="median", role="second", y=median)],
                low=least,
                high=most,
            ),
        )


def _week(db: duckdb.DuckDBPyConnection, log: Path) -> Chart:
    """Return the week without a workflow: CPUs that run and CPUs that wait, on the hour."""
    found: tuple[Any, ...] = db.sql(
        'select any_value("begin"), any_value("end"), any_value(processors) from dynamic'
    ).fetchall()[0]
    begin, end, processors = found
    others, start = window(log, begin, end, processors)
    hours = np.arange(begin, end, HOUR_S)
    runs = _held(hours, start, start + others.run_s, others.procs)
    waits = _held(hours, others.submit, start, others.procs)
    return Lines(
        title="The week of CEA-Curie without the workflow",
        x=Axis(title="time", scale="time"),
        y=Axis(title="CPUs", unit="thousands"),
        at=(hours - begin + _BEGIN).tolist(),
        series=[
            Series(name="in use", role="main", y=(runs / 1000).tolist()),
            Series(name="in queue", role="second", y=(waits / 1000).tolist()),
        ],
    )


def _held(at: np.ndarray, begin: np.ndarray, end: np.ndarray, procs: np.ndarray) -> np.ndarray:
    """Return the CPUs of the jobs that have begun and not ended at each instant."""
    total = np.zeros(len(at) + 1)
    np.add.at(total, np.searchsorted(at, begin), procs)
    np.add.at(total, np.searchsorted(at, end), -procs)
    return np.cumsum(total)[:-1]
