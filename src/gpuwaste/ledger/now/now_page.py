"""The page /now: the current state of the cluster."""

from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup

from gpuwaste.core.units import GpuTimeUnit
from gpuwaste.ledger.now.node_groups import NodeOrder, ordered
from gpuwaste.ledger.now.node_map import LEVELS, MOST_NAMED, MOST_NODES, node_map
from gpuwaste.ledger.now.now_text import told
from gpuwaste.ledger.now.now_types import IdleJob, NowDocument, NowTotals
from gpuwaste.show.environment import Frame, page

ROWS: Final = 50
_FEW: Final = 40  # nodes whose map needs no more width than the text


def _levels(totals: NowTotals) -> dict[str, float]:
    names = ("high", "moderate", "low", "idle", "unknown", "suspended")
    return {name: float(getattr(totals, name)) for name in names}


def _sentence(document: NowDocument) -> str:
    totals = document.totals
    silent = totals.silent_nodes
    nodes = f"{silent:,} {'node does' if silent == 1 else 'nodes do'} not report" if silent else "all nodes report"
    if not totals.held:
        return f"No job holds a GPU now; {nodes}."
    of = f" of {totals.gpus:,}" if totals.gpus else ""  # unknown while the nodes are unknown
    jobs = f"by {totals.idle_jobs:,} {'job' if totals.idle_jobs == 1 else 'jobs'}"
    if totals.idle:
        return f"{_gpus(totals.idle, of)} held and idle now, {jobs}; {nodes}."
    by = "a job" if totals.jobs == 1 else "jobs"
    return f"{_gpus(totals.held, of)} held by {by} now; no GPU is reported idle; {nodes}."


def _gpus(count: int, of: str) -> str:
    return f"{count:,}{of} {'GPU' if count == 1 and not of else 'GPUs'} {'is' if count == 1 else 'are'}"


def job_link(job: IdleJob) -> str:
    """Return the id in the URL of the job's page: for several array tasks that of the array."""
    return job.printed_id.partition("_[")[0]


def now_page(
    document: NowDocument, number: int, frame: Frame, order: NodeOrder = "name", drawn: Markup | None = None
) -> str:
    """Return the page; `number` is the page of the table of nodes; `drawn` is their map, if it was drawn before."""
    framed = replace(frame, links={"csv": "/now.csv", "json": "/now.json"})
    first = min((number - 1) * ROWS, max(0, len(document.nodes) - 1) // ROWS * ROWS)
    number = first // ROWS + 1
    last = first + ROWS >= len(document.nodes)
    return page(
        "now",
        framed,
        now=document,
        sentence=_sentence(document),
        levels=_levels(document.totals),
        map=node_map(document.nodes, order) if drawn is None else drawn,
        map_levels=[level for level in LEVELS.values() if level != "suspended" or document.totals.suspended],
        named=MOST_NAMED,
        few=_FEW,
        order=order,
        order_url=_url,
        nodes=ordered(document.nodes, order)[first : first + ROWS],
        node_unit=GpuTimeUnit.of(node.wasted_s for node in document.nodes),
        idle_unit=GpuTimeUnit.of(job.wasted_s for job in document.idle),
        first=first,
        more_nodes=max(0, len(document.nodes) - MOST_NODES),
        before=_url(order, number - 1) if first else None,
        after=None if last else _url(order, number + 1),
        job_link=job_link,
        told=told,
        changes=f"/now/changes?after={frame.place}",
    )


def _url(order: NodeOrder, number: int = 1) -> str:
    """Return the address of the page with the nodes in this order, at a page of their table or at the map."""
    asked = {**({"sort": order} if order != "name" else {}), **({"page": number} if number > 1 else {})}
    return f"/now{'?' if asked else ''}{urlencode(asked)}#{'nodes' if number > 1 else 'map'}"
