"""Documents of views for the tests of their pages."""

from typing import Any

from bench.chart_samples import queue, waits

from gpuwaste.show.view_document import Column, Fact, ViewDocument

COLUMNS = [
    Column(name="user", title="User"),
    Column(name="first", title="First", unit="UTC s"),
    Column(name="jobs", title="Jobs", unit="jobs"),
    Column(name="wait_s", title="Median wait", unit="s"),
    Column(name="share", title="Failed", unit="share"),
    Column(name="gpu_hours", title="Held", unit="GPU-hours"),
    Column(name="timeouts", title="Timeouts", unit="jobs"),
]


def view(**changes: Any) -> ViewDocument:
    """Return a view with 120 rows, and with what a test changes of it."""
    plain: dict[str, Any] = {
        "view": "waits",
        "title": "Waits",
        "question": "How long do jobs wait?",
        "clusters": ["c1"],
        "start": 1_767_225_600,
        "end": 1_769_904_000,
        "generated": 1_769_904_000,
        "columns": COLUMNS,
        "rows": [(f"user{n}", 1_767_225_600 + n * 86_400, n, 90.0 * n, 0.125, n / 3, 0) for n in range(120)],
        "rows_left_out": 7,
        "charts": [waits(), queue()],
        "facts": [
            Fact(id="wait_p50_s", value=600, unit="s", text="10 min", means="median wait", query="q", low=540, high=660)
        ],
        "narrative": ["Half of the jobs waited 10 min or less.", "The queue is deepest on Tuesday."],
        "notes": ["Jobs are whole."],
        "sql": "SELECT *\n  FROM jobs\n WHERE submit < $end",
        "parameters": {"end": 1_769_904_000},
    }
    return ViewDocument(**(plain | changes))
