"""The page /now: the current state of the cluster."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from markupsafe import Markup

from gpuwaste.ledger.level_charts import MOST_NODES, node_grid
from gpuwaste.ledger.now.now_text import told
from gpuwaste.ledger.now.now_types import IdleJob, NowDocument, NowTotals
from gpuwaste.show.environment import Frame, page

ROWS: Final = 50


def _levels(totals: NowTotals) -> dict[str, float]:
    names = ("high", "moderate", "low", "idle", "unknown", "suspended")
    return {name: float(getattr(totals, name)) for name in names}


def _sentence(document: NowDocument) -> str:
    totals = document.totals
    silent = totals.silent_nodes
    nodes = f"{silent} {'node reports' if silent == 1 else 'nodes report'} nothing" if silent else "every node reports"
    if not totals.held:
        return f"No GPU is held by a job now; {nodes}."
    of = f" of {totals.gpus:,}" if totals.gpus else ""  # unknown while the nodes are unknown
    jobs = f"by {totals.idle_jobs:,} {'job' if totals.idle_jobs == 1 else 'jobs'}"
    if not totals.idle:
        if totals.held == 1 and not of:
            return f"1 GPU is held by a job now, and it is not reported idle; {nodes}."
        are = "is" if totals.held == 1 else "are"
        return f"{totals.held:,}{of} GPUs {are} held by jobs now, and none of them is reported idle; {nodes}."
    are = f"{'GPU' if totals.idle == 1 and not of else 'GPUs'} {'is' if totals.idle == 1 else 'are'}"
    return f"{totals.idle:,}{of} {are} held and idle now, {jobs}; {nodes}."


def job_link(job: IdleJob) -> str:
    """Return the id in the URL of the job's page: for several array tasks that of the array."""
    return job.printed_id.partition("_[")[0]


def now_page(
    document: NowDocument, number: int, frame: Frame, url: Callable[[int], str], grid: Markup | None = None
) -> str:
    """Return the page; `number` is the page of the table of nodes, `url` returns the address of another one.

    `grid` is the drawing of the nodes, if it was made before.
    """
    framed = replace(frame, links={"csv": "/now.csv", "json": "/now.json"})
    first = min((number - 1) * ROWS, max(0, len(document.nodes) - 1) // ROWS * ROWS)
    number = first // ROWS + 1
    return page(
        "now",
        framed,
        now=document,
        sentence=_sentence(document),
        levels=_levels(document.totals),
        grid=node_grid(document.nodes) if grid is None else grid,
        nodes=document.nodes[first : first + ROWS],
        first=first,
        more_nodes=max(0, len(document.nodes) - MOST_NODES),
        before=url(number - 1) if first else None,
        after=url(number + 1) if first + ROWS < len(document.nodes) else None,
        job_link=job_link,
        told=told,
        changes=f"/now/changes?after={frame.place}",
    )
