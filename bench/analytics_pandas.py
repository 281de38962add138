"""Views with pandas and Plotly, each job a row in memory and each point in the page: one line of JSON.

Runs in a virtual environment of its own (bench/analytics.py makes it): python analytics_pandas.py JOBS.parquet ROUNDS.
"""

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.express as px
from plotly.graph_objects import Figure

DAY_S, HOUR_S = 86400, 3600


def jobs(table: pd.DataFrame) -> Figure:
    """Return the jobs that ended by day and state."""
    day = pd.to_datetime(table["end"] // DAY_S * DAY_S, unit="s")
    counts = table.groupby([day.rename("day"), "state"]).size().rename("jobs").reset_index()
    held = ((table["end"] - table["start"]) * table["gpus"]).groupby(day).sum()
    return px.bar(counts, x="day", y="jobs", color="state", title=f"{held.sum() / HOUR_S:.1f} GPU-hours")


def sizes(table: pd.DataFrame) -> Figure:
    """Return a point for each job: GPUs or nodes against run time, by state."""
    size = np.where(table["gpus"] > 0, table["gpus"], table["n_nodes"])
    return px.scatter(x=table["end"] - table["start"], y=size, color=table["state"], log_x=True, log_y=True)


def limits(table: pd.DataFrame) -> Figure:
    """Return a point for each job: requested against used time, backfilled ones marked."""
    backfilled = table["flags"].str.contains("SchedBackfill")
    return px.scatter(
        x=table["time_limit_s"], y=table["end"] - table["start"], color=backfilled, log_x=True, log_y=True
    )


def waits(table: pd.DataFrame) -> Figure:
    """Return median and 95th percentile of waits by partition and size."""
    wait = (table["start"] - table["submit"]).clip(lower=0)
    size = np.ceil(np.log2(np.where(table["gpus"] > 0, table["gpus"], table["n_nodes"])))
    groups = wait.groupby([table["partition"], table["gpus"] > 0, size]).quantile([0.5, 0.95]).rename("wait")
    hours = wait.groupby(table["submit"] // HOUR_S % 24).quantile([0.5, 0.95])
    names = ["partition", "gpus", "size", "quantile"]
    bars = groups.rename_axis(names).reset_index()
    return px.bar(bars, x="partition", y="wait", color="quantile", barmode="group", title=f"{hours.max():.0f} s")


def states(table: pd.DataFrame) -> Figure:
    """Return the jobs by user and state."""
    counts = table.groupby(["user", "account", "state"]).size().rename("jobs").reset_index()
    return px.bar(counts, x="user", y="jobs", color="state")


def queue(table: pd.DataFrame) -> Figure:
    """Return the waiting jobs by day and hour."""
    turns = pd.concat([pd.Series(1, table["submit"]), pd.Series(-1, table["start"])]).sort_index().cumsum()
    depth = turns.groupby(turns.index // HOUR_S).mean()
    return px.density_heatmap(x=depth.index // 24, y=depth.index % 24, z=depth.to_numpy(), nbinsy=24)


VIEWS: tuple[Callable[[pd.DataFrame], Figure], ...] = (jobs, sizes, limits, waits, states, queue)


def main() -> None:
    """Read the jobs, make each view's page, print what it took."""
    began = time.perf_counter()
    table = pd.read_parquet(sys.argv[1])
    found: dict[str, object] = {"read_s": round(time.perf_counter() - began, 2)}
    views = {}
    for view in VIEWS:
        times, size = [], 0
        for _ in range(int(sys.argv[2])):
            began = time.perf_counter()
            size = len(view(table).to_html(include_plotlyjs=False))
            times.append((time.perf_counter() - began) * 1000)
        views[view.__name__] = {"ms": times, "bytes": size}
    found["views"] = views
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    found["peak_mb"] = int(peak[1]) // 1024 if peak else None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
