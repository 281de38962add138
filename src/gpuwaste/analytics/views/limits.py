"""Requested against used time."""

from collections import Counter
from typing import Any, Final

from gpuwaste.analytics.answer import Answer
from gpuwaste.analytics.asking import Asking
from gpuwaste.analytics.chart import Axis, Chart, Role
from gpuwaste.analytics.charting import RUNS_NOTE, binned, columns_needed, decade_edges
from gpuwaste.analytics.document import Column
from gpuwaste.analytics.facts import Facts, ratio
from gpuwaste.core.units import HOUR_S

TITLE: Final = "Requested and used time"
QUESTION: Final = "How much of the time that jobs request do they use?"
SENTENCES: Final = (
    "Jobs used {used_share} of the time that they requested.",
    "{tenth_share} of the jobs used less than a tenth of their time limit; {timeout_share} were ended by it.",
    "In partition {loose_partition} jobs used the smallest part of their time limits: {loose_share}.",
    (
        "The backfill scheduler started {backfilled_share} of the jobs; they used {backfilled_used_share} of the time "
        "that they requested, the others {main_used_share}."
    ),
)
_COLUMNS: Final = (
    Column(name="partition", title="Partition"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="used_hours", title="Used", unit="h"),
    Column(name="limit_hours", title="Requested", unit="h"),
    Column(name="used_share", title="Used of requested", unit="share"),
    Column(name="tenth", title="Used under a tenth", unit="jobs"),
    Column(name="timeouts", title="Ended by the limit", unit="jobs"),
    Column(name="spare_gpu_hours", title="Requested, not used", unit="GPU-hours"),
)
_SUMS: Final = ("runs", "used_s", "limit_s", "tenth", "timeouts", "spare_gpu_s")
_ENOUGH: Final = 20
_LAYERS: Final[dict[bool | None, tuple[str, Role]]] = {
    None: ("jobs", "main"),
    False: ("main scheduler or at submission", "main"),
    True: ("backfilled", "second"),
}


def answer(asking: Asking) -> Answer:
    """Ask for the bins and for the sums by partition and day."""
    rows, bins = asking.rows("limits_blocks"), asking.rows("limits")
    partitions: dict[str, Counter[str]] = {}
    for row in rows:
        partitions.setdefault(row["partition"], Counter()).update({name: row[name] for name in _SUMS})
    whole: Counter[str] = sum(partitions.values(), Counter())
    facts, blocks = Facts("limits_blocks"), asking.window.blocks
    facts.add("runs", whole["runs"], "jobs", "jobs with a time limit that ran and ended")
    for name, part, of, means in (
        ("used_share", "used_s", "limit_s", "share of the requested time that was used"),
        ("tenth_share", "tenth", "runs", "share of jobs that used less than a tenth of their time limit"),
        ("timeout_share", "timeouts", "runs", "share of jobs that were ended by their time limit"),
    ):
        facts.share(name, whole[part], whole[of], means, sample=ratio(rows, part, of, blocks))
    facts.add("spare_gpu_hours", whole["spare_gpu_s"] / HOUR_S, "GPU-hours", "GPU-hours requested and not used")
    many = [(sums["used_s"] / sums["limit_s"], name) for name, sums in partitions.items() if sums["runs"] >= _ENOUGH]
    if len(many) > 1:
        share, name = min(many)
        facts.add("loose_partition", name or "none", "", "partition that uses the smallest part of its time limits")
        facts.add("loose_share", share, "share", "share of the requested time that is used there")
    _add_backfilled(facts, rows, blocks)
    notes = [RUNS_NOTE, "Jobs with a time limit that ended in the window after they had started."]
    unknown = sum(row["runs"] for row in rows if row["backfilled"] is None)
    if unknown:
        notes.append(f"Of {unknown:,} of {whole['runs']:,} jobs accounting's flags do not name the scheduler.")
    order = sorted(partitions.items(), key=lambda item: (-item[1]["runs"], item[0]))
    return Answer(facts, _COLUMNS, [_line(name, sums) for name, sums in order], _charts(bins), notes)


def _add_backfilled(facts: Facts, rows: list[dict[str, Any]], blocks: int) -> None:
    """Add how many jobs the backfill scheduler started, and how well their limits fit, where accounting says so."""
    parts = [
        {"block": row["block"], "runs": row["runs"], "backfilled": row["runs"] if row["backfilled"] else 0}
        for row in rows
        if row["backfilled"] is not None
    ]
    if not parts:
        return
    backfilled, told = (sum(part[name] for part in parts) for name in ("backfilled", "runs"))
    sample = ratio(parts, "backfilled", "runs", blocks)
    facts.share("backfilled_share", backfilled, told, "share of jobs that were backfilled", sample=sample)
    for name, which, text in (
        ("backfilled", True, "backfilled jobs"),
        ("main", False, "jobs that were not backfilled"),
    ):
        own = [row for row in rows if row["backfilled"] is which]
        used, limit = (sum(row[column] for row in own) for column in ("used_s", "limit_s"))
        means, sample = f"share of the requested time that {text} used", ratio(own, "used_s", "limit_s", blocks)
        facts.share(f"{name}_used_share", used, limit, means, sample=sample)


def _line(name: str, sums: Counter[str]) -> list[str | int | float]:
    used = sums["used_s"] / sums["limit_s"]
    hours = sums["used_s"] / HOUR_S, sums["limit_s"] / HOUR_S
    return [name, sums["runs"], *hours, used, sums["tenth"], sums["timeouts"], sums["spare_gpu_s"] / HOUR_S]


def _charts(bins: list[dict[str, Any]]) -> list[Chart]:
    if not bins:
        return []
    edges = decade_edges(columns_needed(max(max(row["x"], row["y"]) for row in bins)))
    cells = ((*_LAYERS[row["backfilled"]], row["x"], row["y"], row["runs"]) for row in bins)
    axes = Axis(title="Requested time", unit="s", scale="log"), Axis(title="Used time", unit="s", scale="log")
    return [binned("Requested against used time", axes, cells, (edges, edges), diagonal=True)]
