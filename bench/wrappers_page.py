"""The page of the study of wrappers: tables of both experiments, and what they say."""

from collections.abc import Sequence
from typing import Any, Final

import duckdb
import numpy as np

from bench.wrappers_results import correlations_of_ten, variants

PAPER: Final = {
    "longest queue time": (0.0229, -0.0161, -0.8379),
    "shortest queue time": (0.0, 0.0, -0.8572),
    "mean queue time": (0.0048, 0.0007, -0.8720),
    "highest priority": (0.0018, 0.0062, 0.9911),
    "lowest priority": (-0.0002, 0.0003, 0.9929),
    "mean priority": (-0.0010, 0.0013, 0.9952),
}
"""Table 4 of the paper: correlations with run time, CPUs and fair share."""
PAPER_SLOPE: Final = 84_374
_MEASURES: Final = ("max(queue_s)", "min(queue_s)", "avg(queue_s)", "max(priority)", "min(priority)", "avg(priority)")


def page(db: duckdb.DuckDBPyConnection) -> str:
    """Return the page from the views `static`, `loads` and `dynamic`."""
    texts = {
        "correlations": _table(("", "run time", "CPUs", "fair share", "paper: fair share"), _correlations(db)),
        "by_share": _table(("fair share", "mean", "shortest", "longest", "of jobs at once"), _by_share(db)),
        "gains": _table(("submitted after", "fair share", "mean", "median", "least", "most"), _gains(db)),
        "kinds": _table(
            ("members", "submitted after", "way", "jobs", "mean queue time", "mean gain", "least", "most"), _kinds(db)
        ),
        "variants": _table(
            ("loads", "correlation", "90 of 100 draws of ten loads", "priority for each 1 of fair share"), _variants(db)
        ),
        "more_loads": str(_one(db, "select count(distinct seed) from loads")),
        "paper_slope": f"{PAPER_SLOPE:,}",
        "slope": f"{_slope(db, 'avg(priority)'):,.0f}",
        "half": f"{-np.log(2) / _slope(db, 'ln(avg(queue_s))', 'where fair_share <= 0.5'):.2f}",
        "loads": str(_one(db, "select count(distinct seed) from static")),
        "times": {1: "once", 2: "twice"}.get(_one(db, "select count(distinct seed) from dynamic"), "several times"),
        "cases": str(_one(db, 'select count(distinct "case") from dynamic')),
        "mean_gain": f"{_one(db, _VERTICAL.format('avg(gain)') + ' and notice_s = 1'):+.1%}",
        "mean_at_once": f"{_one(db, _VERTICAL.format('avg(gain)') + ' and notice_s = 0'):+.1%}",
        "mean_late": f"{_one(db, _VERTICAL.format('avg(gain)') + ' and notice_s = 30'):+.1%}",
        "most_gain": f"{_one(db, _VERTICAL.format('max(gain)')):.1%}",
        "worse": f"{_one(db, _VERTICAL.format('avg((gain < 0)::int)')):.0%}",
        "same": f"{_one(db, _VERTICAL.format('avg((gain = 0)::int)')):.0%}",
    }
    return TEXT.format(**texts)


_VERTICAL: Final = "select {} from dynamic where wrapper = 'vertical' and members = 1"


def _one(db: duckdb.DuckDBPyConnection, query: str) -> Any:
    row = db.sql(query).fetchone()
    return row[0] if row else None


def _slope(db: duckdb.DuckDBPyConnection, measure: str, where: str = "") -> float:
    """Return the slope of a measure over fair share, by least squares."""
    found = db.sql(f"select fair_share, {measure} from static {where} group by 1").fetchnumpy()  # noqa: S608 texts of ours
    share, measured = (np.asarray(column, dtype=np.float64) for column in found.values())
    return float(np.polyfit(share, measured, 1)[0])


def _correlations(db: duckdb.DuckDBPyConnection) -> list[list[str]]:
    measures = ", ".join(f"{measure} m{k}" for k, measure in enumerate(_MEASURES))
    found = db.sql(f"select run_s, cpus_each, fair_share, {measures} from static group by 1, 2, 3").fetchnumpy()  # noqa: S608 texts of ours
    rows = []
    for k, (name, paper) in enumerate(PAPER.items()):
        ours = [float(np.corrcoef(found[by], found[f"m{k}"])[0, 1]) for by in ("run_s", "cpus_each", "fair_share")]
        rows.append([name, *(f"{round(value, 2) + 0:.2f}" for value in ours), f"{paper[2]:.2f}"])
    return rows


def _variants(db: duckdb.DuckDBPyConnection) -> list[list[str]]:
    rows = []
    for one in variants(db):
        found = correlations_of_ten(db, one)
        rows.append([one.name, f"{found.all:.2f}", f"{found.low:.2f} to {found.high:.2f}", f"{found.slope:,.0f}"])
    return [*rows, ["paper", f"{PAPER['mean queue time'][2]:.2f}", "one draw", f"{PAPER_SLOPE:,}"]]


def _by_share(db: duckdb.DuckDBPyConnection) -> list[list[str]]:
    query = """select fair_share, avg(queue_s), min(queue_s), max(queue_s), avg((queue_s = 0)::int)
        from static group by 1 order by 1"""
    return [
        [f"{f:g}", f"{mean:.0f} s", f"{low} s", f"{high} s", f"{none:.0%}"]
        for f, mean, low, high, none in rows_of(db, query)
    ]


def _gains(db: duckdb.DuckDBPyConnection) -> list[list[str]]:
    columns = "notice_s, fair_share, avg(gain), median(gain), min(gain), max(gain)"
    query = _VERTICAL.format(columns) + " group by 1, 2 order by 1, 2"
    return [
        [f"{notice} s", f"{share:g}", *(f"{value:+.1%}" for value in gains)]
        for notice, share, *gains in rows_of(db, query)
    ]


def _kinds(db: duckdb.DuckDBPyConnection) -> list[list[str]]:
    query = """select members, notice_s, wrapper, any_value(jobs), avg(queue_s), avg(gain), min(gain), max(gain)
        from dynamic group by 1, 2, 3 order by 1, 2, 4 desc, 3"""
    return [
        [str(members), f"{notice} s", way, str(jobs), f"{queue:.0f} s", *(f"{gain:+.1%}" for gain in gains)]
        for members, notice, way, jobs, queue, *gains in rows_of(db, query)
    ]


def rows_of(db: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    return db.sql(query).fetchall()


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in (headers, ["---"] * len(headers), *rows)]
    return "\n".join(lines)


TEXT: Final = """# Wrapped or single: does a chain of jobs wait less as one job?

A workflow is often a chain: each job needs the one before it. A wrapper joins such jobs into one. Fewer jobs are
queued, and the one job is longer, so that backfill finds room for it less often. Marciani et al. measured on a
simulator of Slurm what wrappers gain. This page repeats their two experiments with `gpuwaste simulate sweep`; it is
written by `make bench NAME=wrappers` from the results of [its studies](../../bench/studies).

Wrappers can be

- **vertical**: the chain of one member becomes one long job,
- **horizontal**: the jobs of several members that may run beside each other become one wide job,
- **vertical-horizontal** or **horizontal-vertical**: both, which makes the whole workflow one job.

## Queue time against fair share

{loads} loads of 1000 jobs like LUMI's, all submitted at once on 360,448 CPUs, by 100 users in accounts of equal
shares. Each user has used before what the load gives them to use. One job of another user is followed: 96 to 1152
CPUs, 30 minutes to 3.5 hours, and a fair share from 0.1 to 0.9. Correlations of what it waits, and of its priority,
with what it is:

{correlations}

The sign and the order of size are the paper's: fair share decides, and neither run time nor CPUs matter. Queue time
by fair share:

{by_share}

![Grid of queue time against fair share: high and spread at 0.1, near 0 from 0.5 on](../pictures/wrappers-queue.svg)

A fair share of 0.5 is enough to start at once or nearly so, as in the paper. Priority is a line of the fair share:
{slope} for each 1 of it (paper: {paper_slope}; the weight is 100,000). Queue time halves with each {half} of
fair share, up to 0.5. All that waits in a static load was submitted at the same time, so that age orders nothing.

### Why the correlation is not the paper's

Ten loads are few: other draws of ten give other correlations. With {more_loads} loads of each kind, where jobs hold
CPUs or whole nodes of 128 CPUs, and users' earlier usage goes by CPU seconds or by seconds:

{variants}

![Lines of mean queue time by fair share for each kind of loads](../pictures/wrappers-loads.svg)

The paper's simulator gives jobs whole nodes. Neither their size nor the size of the jobs that gave its users their
earlier usage is known. With whole nodes and usage in CPU seconds the paper's correlation is at the edge of what ten
loads give. With usage in seconds, users are ranked by their run times alone, and waits fall more slowly with the fair
share; such usage is also small compared with what the load uses, so that priorities change while it runs. The paper's
correlation and its slope of priority both lie between the two. Nothing was chosen to agree with the paper: all other
tables and pictures are of shared CPUs and usage in CPU seconds.

## A chain wrapped and not wrapped

The week of 9 to 15 June 2012 of CEA-Curie (10,940 jobs) on 93,312 CPUs. A chain of seven jobs, 96 CPUs and 30 minutes
each, is submitted on the Thursday and the Friday at 10, 15 and 20 o'clock, {times} within that hour, by a user whose
usage gives the fair share that is named: {cases} cases with those of four members. A job of the chain is submitted 0,
1 or 30 s after the one before it has ended. With 0 s Slurm's main loop, which runs at each end, can start it at once;
with 1 s it waits for another end or for the next minute's cycle.

![Lines of CPUs in use and in queue over the week](../pictures/wrappers-week.svg)

What the vertical wrapper gains over single jobs, as a share of the run time of the workflow:

{gains}

![Lines of the gain by fair share after 0 s, mean, median and range](../pictures/wrappers-gain-0.svg)

![Lines of the gain by fair share after 1 s, mean, median and range](../pictures/wrappers-gain-1.svg)

![Lines of the gain by fair share after 30 s, mean, median and range](../pictures/wrappers-gain-30.svg)

The mean is {mean_at_once} with jobs submitted after 0 s, {mean_gain} after 1 s and {mean_late} after 30 s, and the
most {most_gain}; the paper reports 1 % and up to 7 %. On the mean a wrapper saves the wait of each single job for
Slurm's next cycle, and hardly more. In {worse} of the cases the wrapped chain took longer, as in the paper's
outliers: a short job fits a gap that a long one does not. In {same} there was no difference.

A job with `--dependency` is one of those submitted after 0 s: it is in the queue, and may start as soon as the one
before it has ended. So [`gpuwaste plan`](../how-to/plan.md#chains-of-short-jobs) advises by these rows, and by those
with 30 s where a workflow manager submits the jobs.

All ways of wrapping, for a chain and for four chains beside each other:

{kinds}

## What differs from the paper

- The paper ran the code of Slurm; here it is [a queue](../../src/gpuwaste/sim/fair_share_queue.py) on a count of
  processors with Fair Tree, the three weights of MareNostrum 4, and backfill each minute without a limit on its depth.
  Nodes (but for whole nodes as one of the kinds of loads), the time that a cycle takes, and `bf_resolution` are not
  modelled: real queue times are longer by some seconds to a minute.
- A job of a chain is submitted when the one before it has ended. The paper submitted it when that one would have ended
  without waiting.
- The log of Curie is [a reconstruction](../decisions/0013-reading-slurm.md) with users and without groups: each user is
  an account.
"""
