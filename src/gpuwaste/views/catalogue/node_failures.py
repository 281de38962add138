"""Node failures that occur together."""

from collections import Counter
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.units import HOUR_S, MINUTE_S
from gpuwaste.show.chart import Series
from gpuwaste.show.view_document import Column, ViewFacts, duration_text, ratio
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.views.charting import RUNS_NOTE, sideways, without_details
from gpuwaste.views.ranking import SHOWN, LostShare, Superlative, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Node failures"
QUESTION: Final = "Which jobs do failed nodes end, and which failures happen together?"
SENTENCES: Final = (
    "{none_failed} was ended by a failed node.",
    "Failed nodes ended {failed+} in {clusters}, {failed_share} of the {ended} that ended.",
    "These jobs lost {gpu_hours+}.",
    "The largest group of failures ended {largest} at once.",
    "Node {worst_node} has the most lost jobs: {worst_node_failed}.",
)
_NODES_TITLE: Final = "Lost jobs by node"
WORST_NODE: Final = Superlative("worst_node", "worst_node_failed", "bars", _NODES_TITLE)
SUPERLATIVES: Final = (WORST_NODE, Superlative("", "largest", "table", "jobs"))
FINDING: Final = LostShare("failed_share", "jobs")
GAP_S: Final = 10 * MINUTE_S
_LIMIT: Final = 5000
_NODES: Final = 4096
_COLUMNS: Final = (
    Column(name="cluster", title="Cluster"),
    Column(name="first", title="First", unit="UTC s"),
    Column(name="last", title="Last", unit="UTC s"),
    Column(name="jobs", title="Jobs", unit="jobs"),
    Column(name="users", title="Users", unit="users"),
    Column(name="gpu_hours", title="Lost", unit="GPU-hours"),
    Column(name="common", title="Nodes of all of them"),
)


def answer(asking: ViewQuery) -> Answer:
    """Query the runs that a node failure ended, and group those that ended within minutes."""
    rows = asking.rows("node_failures", gap_s=GAP_S, limit=_LIMIT)
    days = asking.rows("states_blocks")
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    nodes: Counter[str] = Counter()
    for row in rows:
        row["names"] = _nodes(row["nodes"])
        nodes.update(row["names"])
        groups.setdefault((row["cluster"], row["number"]), []).append(row)
    facts = ViewFacts("node_failures")
    ended, failed = (sum(day[name] for day in days) for name in ("ended", "node_fail"))
    facts.add("ended", ended, "jobs", "jobs that ended")
    if silent := without_details(asking):
        note = f"The log of {silent} does not record which jobs a failed node ended."
        return Answer(facts, _COLUMNS, [], [], [], parameters={"gap_s": GAP_S}, nothing=note)
    facts.add("failed", failed, "jobs", "jobs that a failed node ended")
    if ended and not failed:
        facts.add("none_failed", "No job", "", "jobs that a failed node ended, if there is none")
    sample = ratio(days, "node_fail", "ended", asking.window.blocks)
    facts.share("failed_share", failed, ended, "share of jobs that a failed node ended", sample=sample)
    facts.add("clusters", len(groups), "groups", "groups of failures")
    facts.add("gpu_hours", sum(row["gpu_s"] for row in rows) / HOUR_S, "GPU-hours", "GPU-hours of the lost jobs")
    table = sorted((_line(own) for own in groups.values()), key=lambda line: (-line[3], line[1]))
    if table:
        facts.add("largest", table[0][3], "jobs", "jobs in the largest group of failures")
    ranked = ranking((node, node, count) for node, count in nodes.items())
    ranked.add(facts, WORST_NODE, "jobs", ("node in the most lost jobs", "lost jobs in which that node was"))
    series = [Series(name="lost jobs", role="node_fail", y=[float(count) for count in ranked.values[:SHOWN]])]
    chart = sideways(_NODES_TITLE, ranked.names[:SHOWN], "jobs", series, of="Node")
    notes = [
        RUNS_NOTE,
        (
            f"Failures within {duration_text(GAP_S)} of each other are one group. A lost job counts for each of its "
            "nodes: accounting does not name the failed one."
        ),
        "Xid errors of GPUs are not counted here: see the events gpu.xid and the agents' metrics.",
    ]
    if failed > len(rows):
        notes.append(f"Groups and nodes are of the first {len(rows)} lost jobs.")
    charts, nothing = [chart] if ranked.names else [], "" if ended else "No job ended in this window."
    return Answer(facts, _COLUMNS, table, charts, notes, parameters={"gap_s": GAP_S}, nothing=nothing)


def _nodes(text: str) -> frozenset[str]:
    try:
        return frozenset(expand(text)[:_NODES])
    except GpuwasteError:
        return frozenset()


def _line(own: list[dict[str, Any]]) -> list[Any]:
    common = frozenset.intersection(*(row["names"] for row in own))
    return [
        own[0]["cluster"], own[0]["end"], own[-1]["end"], len(own), len({row["user"] for row in own}),
        sum(row["gpu_s"] for row in own) / HOUR_S, ",".join(sorted(common)[:SHOWN]),
    ]  # fmt: skip
