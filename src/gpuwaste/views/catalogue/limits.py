"""Used against requested time."""

from collections import Counter
from typing import Any, Final

from gpuwaste.core.units import HOUR_S
from gpuwaste.show.chart import Axis, Chart, Role, Series
from gpuwaste.show.view_document import Column, ViewFacts, ratio
from gpuwaste.views.charting import (
    RUNS_NOTE,
    binned,
    columns_needed,
    decade_edges,
    partition_text,
    sideways,
    some_of,
    without_details,
)
from gpuwaste.views.ranking import LostShare, Superlative, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "Requested and used time"
QUESTION: Final = "How much of the time that jobs request do they use?"
SENTENCES: Final = (
    (
        "Half of the jobs used {used_p50_share} of their time limit or less[; {tenth_share+} of the jobs used less "
        "than a tenth of it]."
    ),
    "In total, jobs used {used_share} of the time that they requested; time beyond a limit does not count.",
    "{beyond_share+} of the jobs ran beyond their limit, {beyond_s} in total.",
    "{timeout_share} of the jobs were ended by their limit.",
    (
        "Jobs in {loose_partition} used the smallest part: {loose_share} of the time that they requested (of the "
        "partitions with {enough_jobs} or more)."
    ),
    (
        "The backfill scheduler started {backfilled_share} of the jobs; these used {backfilled_used_share} of the time "
        "that they requested, the others {main_used_share} of theirs."
    ),
)
LOOSEST: Final = Superlative("loose_partition", "loose_share", "table", "used_share", labels=("partition",), least=True)
SUPERLATIVES: Final = (LOOSEST,)
FINDING: Final = LostShare("used_share", "jobs", rest=True)
_COLUMNS: Final = (
    Column(name="partition", title="Partition"),
    Column(name="runs", title="Jobs", unit="jobs"),
    Column(name="used_hours", title="Used", unit="h"),
    Column(name="limit_hours", title="Requested", unit="h"),
    Column(name="used_share", title="Used of requested", unit="share"),
    Column(name="tenth", title="Used under a tenth", unit="jobs"),
    Column(name="timeouts", title="Ended by the limit", unit="jobs"),
    Column(name="beyond", title="Beyond the limit", unit="jobs"),
    Column(name="spare_gpu_hours", title="Requested, not used", unit="GPU-hours"),
)
_SUMS: Final = ("runs", "used_s", "limit_s", "within_s", "tenth", "timeouts", "beyond", "beyond_s", "spare_gpu_s")
_ENOUGH: Final = 20
_PERCENT: Final = 100
_TENTHS: Final = 10
_BEYOND_NOTE: Final = (
    "A job ran beyond its limit if it ended more than a minute and more than 5 % later: Slurm stops a job some "
    "seconds after its limit, and OverTimeLimit, or a lowered limit, allows more."
)
_LAYERS: Final[dict[bool | None, tuple[str, Role]]] = {
    None: ("jobs", "main"),
    False: ("main scheduler or at submission", "main"),
    True: ("backfilled", "second"),
}


def answer(asking: ViewQuery) -> Answer:
    """Query the bins and the sums by partition and day."""
    rows, bins, parts = asking.rows("limits_blocks"), asking.rows("limits"), asking.rows("limits_parts")
    silent = without_details(asking)
    partitions: dict[str, Counter[str]] = {}
    for row in rows:
        partitions.setdefault(row["partition"], Counter()).update({name: row[name] for name in _SUMS})
    whole: Counter[str] = sum(partitions.values(), Counter())
    facts, blocks = ViewFacts("limits_blocks"), asking.window.blocks
    facts.add("runs", whole["runs"], "jobs", "jobs with a time limit that ran and ended")
    facts.add("used_p50_share", _median(parts), "share", "share of the time limit that half of the jobs do not exceed")
    for name, part, of, means in (
        ("used_share", "within_s", "limit_s", "share of the requested time that was used"),
        ("tenth_share", "tenth", "runs", "share of jobs that used less than a tenth of their time limit"),
        ("beyond_share", "beyond", "runs", "share of jobs that ran on beyond their time limit"),
        *((("timeout_share", "timeouts", "runs", "share of jobs that were ended by their time limit"),) * (not silent)),
    ):
        facts.share(name, whole[part], whole[of], means, sample=ratio(rows, part, of, blocks))
    facts.add("beyond_s", whole["beyond_s"], "s", "run time of jobs beyond their limits")
    facts.add("spare_gpu_hours", whole["spare_gpu_s"] / HOUR_S, "GPU-hours", "GPU-hours requested and not used")
    ranked, small = (
        ranking(
            (
                (name, partition_text(name), sums["within_s"] / sums["limit_s"])
                for name, sums in partitions.items()
                if (sums["runs"] >= _ENOUGH) is enough
            ),
            least=True,
        )
        for enough in (True, False)
    )
    if len(ranked.names) > 1:
        facts.add("enough_jobs", f"{_ENOUGH} jobs", "", "least number of jobs of a partition that is named")
        told = "partition that uses the smallest part of its time limits", "share of the requested time used there"
        ranked.add(facts, LOOSEST, "share", told, some=False)
    _add_backfilled(facts, rows, blocks)
    notes = [RUNS_NOTE, "Only jobs with a time limit that started and have ended count."]
    unknown = sum(row["runs"] for row in rows if row["backfilled"] is None)
    if unknown:
        notes.append(f"Accounting lacks the scheduling flag for {some_of(unknown, whole['runs'])}.")
    if whole["beyond"]:
        notes.append(_BEYOND_NOTE)
    if silent and whole["runs"]:
        notes.append(f"The log of {silent} does not record which jobs were ended by their limit.")
    table = [_line(name, partitions[name], timeouts=not silent) for name in (*ranked.groups, *small.groups)]
    nothing = "" if whole["runs"] else "No job with a time limit ran and ended in this window."
    return Answer(facts, _COLUMNS, table, _charts(bins, parts), notes, nothing=nothing)


def _median(parts: list[dict[str, Any]]) -> float | None:
    """Return the median share of the limit that jobs used, to a whole percent; None beyond the limit."""
    half, seen = sum(row["runs"] for row in parts) / 2, 0
    for row in parts:
        seen += row["runs"]
        if seen >= half:
            return min(row["part"] + 1, _PERCENT) / _PERCENT if row["part"] <= _PERCENT else None
    return None


def _add_backfilled(facts: ViewFacts, rows: list[dict[str, Any]], blocks: int) -> None:
    """Add how many jobs the backfill scheduler started, and how well their limits fit, if accounting has the flag."""
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


def _line(name: str, sums: Counter[str], *, timeouts: bool) -> list[str | int | float | None]:
    used = sums["within_s"] / sums["limit_s"]
    hours = sums["used_s"] / HOUR_S, sums["limit_s"] / HOUR_S
    ends = sums["timeouts"] if timeouts else None
    return [name, sums["runs"], *hours, used, sums["tenth"], ends, sums["beyond"], sums["spare_gpu_s"] / HOUR_S]


def _charts(bins: list[dict[str, Any]], parts: list[dict[str, Any]]) -> list[Chart]:
    if not bins:
        return []
    edges = decade_edges(columns_needed(max(max(row["x"], row["y"]) for row in bins)))
    cells = ((*_LAYERS[row["backfilled"]], row["x"], row["y"], row["runs"]) for row in bins)
    axes = Axis(title="Requested time", unit="s", scale="log"), Axis(title="Used time", unit="s", scale="log")
    grid = binned("Used against requested time", axes, cells, (edges, edges), diagonal=True)
    tenths = [0] * (_TENTHS + 1)
    for row in parts:
        tenths[_TENTHS if row["part"] > _PERCENT else min(row["part"] // _TENTHS, _TENTHS - 1)] += row["runs"]
    names = [*(f"{10 * place} to {10 * place + 10} %" for place in range(_TENTHS)), "beyond the limit"]
    series = [Series(name="jobs", role="main", y=[float(count) for count in tenths])]
    return [grid, sideways("Jobs by the part of their limit that they used", names, "jobs", series, of="Used")]
