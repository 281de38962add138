"""Figure: bytes and milliseconds of each kind of chart as SVG, beside Plotly (pypi).

Ours is a chart for a desk, as a page has it; milliseconds are CPU time of this process, the median of the rounds with
the least and the most. Plotly's is the page of `write_html`: with `include_plotlyjs=False`, so without the 4 MB of its
script, which a browser loads once and which needs a laxer Content-Security-Policy; the points are sent one by one, as
its scatter needs them. It is installed into a virtual environment of its own (--no-plotly: leave it out).
Prints a table, then one line of JSON.
"""

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any, Final

from bench.chart_samples import all_kinds, points
from gpuwaste.show.chart import Bars, Chart, Gantt, Grid, Lines
from gpuwaste.show.charts.draw import chart_svg

TARGET_B: Final = {"bins": 25_000}
_PLOTLY: Final = """
import json, statistics, sys, time, gzip
import plotly, plotly.graph_objects as go
figures = {}
for name, (traces, layout) in json.load(sys.stdin).items():
    found = []
    for _ in range(5):
        begun = time.process_time()
        text = go.Figure(data=traces, layout=layout).to_html(include_plotlyjs=False)
        found.append((time.process_time() - begun) * 1e3)
    figures[name] = {"bytes": len(text), "gzip": len(gzip.compress(text.encode())), "ms": statistics.median(found),
                     "least": min(found), "most": max(found)}
print(json.dumps({"version": plotly.__version__, "figures": figures,
                  "script": len(plotly.offline.get_plotlyjs())}))
"""


def measured(chart: Chart, rounds: int) -> dict[str, float]:
    """Return bytes, zipped bytes and CPU milliseconds of a chart."""
    found, text = [], ""
    for _ in range(rounds):
        begun = time.process_time()
        text = chart_svg(chart)
        found.append((time.process_time() - begun) * 1e3)
    zipped = len(gzip.compress(text.encode()))
    ms = statistics.median(found)
    return {"bytes": len(text), "gzip": zipped, "ms": ms, "least": min(found), "most": max(found)}


def traces_of(chart: Chart) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the same data as Plotly's traces and layout."""
    layout: dict[str, Any] = {"title": {"text": chart.title}}
    if isinstance(chart, Grid):
        wide = len(chart.columns)
        rows = [list(chart.cells[row * wide : (row + 1) * wide]) for row in range(len(chart.rows))]
        return [{"type": "heatmap", "x": list(chart.columns), "y": list(chart.rows), "z": rows}], layout
    if isinstance(chart, Bars):
        at: list[Any] = [*chart.x.categories] or [*chart.at]
        across = ("y", "x") if chart.sideways else ("x", "y")
        kind = {"type": "bar", "orientation": "h" if chart.sideways else "v"}
        layout["barmode"] = "stack"
        return [{**kind, across[0]: at, across[1]: list(one.y), "name": one.name} for one in chart.series], layout
    if isinstance(chart, Gantt):
        names = [chart.rows[one.row].name for one in chart.spans]
        lasts = [one.end - one.start for one in chart.spans]
        starts = [one.start for one in chart.spans]
        return [{"type": "bar", "orientation": "h", "base": starts, "x": lasts, "y": names}], layout
    if isinstance(chart, Lines):
        return [
            {"type": "scatter", "x": list(chart.at), "y": list(one.y), "name": one.name} for one in chart.series
        ], layout
    states: dict[str, tuple[list[float], list[float]]] = {}
    for state, elapsed, gpus in points(100_000):
        xs, ys = states.setdefault(state, ([], []))
        xs.append(elapsed)
        ys.append(gpus)
    return [
        {"type": "scattergl", "mode": "markers", "x": xs, "y": ys, "name": state} for state, (xs, ys) in states.items()
    ], layout


def plotly(charts: dict[str, Chart]) -> dict[str, Any]:
    """Return what Plotly takes for the same charts, from an interpreter of its own."""
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "plotly"], check=True, stdout=sys.stderr)
        data = json.dumps({name: traces_of(chart) for name, chart in charts.items()})
        argv = [python, "-c", _PLOTLY]
        found: dict[str, Any] = json.loads(
            subprocess.run(argv, input=data, capture_output=True, text=True, check=True).stdout
        )
        return found


def main() -> int:
    """Measure and print; returns 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-plotly", action="store_true")
    options = parser.parse_args()
    charts = all_kinds()
    ours = {name: measured(chart, options.rounds) for name, chart in charts.items()}
    theirs = {} if options.no_plotly else plotly(charts)
    print(f"{'chart':<16}{'drawn by':<14}{'bytes':>10}{'gzip':>9}{'ms':>8}{'least':>8}{'most':>8}")
    for name, one in ours.items():
        print(_line(name, "gpuwaste", one))
        if theirs:
            print(_line("", f"plotly {theirs['version']}", theirs["figures"][name]))
    if theirs:
        print(f"Plotly's script, once: {theirs['script']:,} bytes; ours has none")
    missed = [name for name, most in TARGET_B.items() if ours[name]["bytes"] > most]
    print(f"target: {TARGET_B} bytes: {'missed by ' + ', '.join(missed) if missed else 'met'}")
    print(json.dumps({"bench": "charts", "gpuwaste": ours, "plotly": theirs}))
    return 1 if missed else 0


def _line(name: str, who: str, one: dict[str, float]) -> str:
    numbers = f"{one['bytes']:>10,}{one['gzip']:>9,}{one['ms']:>8.1f}{one['least']:>8.1f}{one['most']:>8.1f}"
    return f"{name:<16}{who:<14}{numbers}"


if __name__ == "__main__":
    sys.exit(main())
