"""The balance of the machine: where each of its GPU-hours went, and why GPUs were free although jobs waited."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta, timezone
from typing import Final

from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.balance.allocated import USES, WindowUse, cause_text, window_use
from gpuwaste.ledger.balance.class_names import WAITED_FOR, class_name
from gpuwaste.ledger.balance.reads import devices_of
from gpuwaste.ledger.balance.stranding import StrandingJob, stranding_jobs
from gpuwaste.ledger.balance.types import BalanceClass, Devices
from gpuwaste.ledger.balance.window import MOST_RUNS, WindowBalance, add_window
from gpuwaste.show.chart import Chart, Series
from gpuwaste.show.terminal_cells import local_time
from gpuwaste.show.view_document import Cell, Column, ViewFacts
from gpuwaste.store.database import query_text
from gpuwaste.views import balance_charts as charting
from gpuwaste.views.charting import sideways
from gpuwaste.views.machine_doubts import machine_doubts
from gpuwaste.views.ranking import OVERVIEW, Superlative, ranking
from gpuwaste.views.view_query import Answer, ViewQuery

TITLE: Final = "The balance of the machine"
QUESTION: Final = "Where did every GPU-hour of the machine go, and why were GPUs free although jobs waited?"
SENTENCES: Final = (
    (
        "Of the {machine_hours} of the machine, {allocated_share} were allocated"
        "[; {used_share+} of the hours had high or moderate utilization]."
    ),
    (
        "In {waited_hours+} {devices} were free although jobs waited"
        "[; the largest part: {top_cause}][ ({top_cause_hours})]."
    ),
    (
        "Job {blocker} kept {blocker_hours} on {blocker_nodes} from jobs that waited"
        "[: it held {blocker_share} of the {blocker_what} with {blocker_gpus}]."
    ),
    "In {free_hours+} {devices} were free and no job waited for them.",
    "In {away_hours+} {devices} were down, drained or in maintenance.",
    "In {reserved_hours+} {devices} were reserved and not used.",
    "{not_known_share+} of the hours are not known.",
)
_CAUSES_TITLE: Final = "Free although jobs wait, by cause"
TOP_CAUSE: Final = Superlative("top_cause", "top_cause_hours", "bars", _CAUSES_TITLE)
SUPERLATIVES: Final = (TOP_CAUSE,)
_MS: Final = 1000
_MEANS: Final = {
    "waited": "free although jobs waited",
    "free": "free while no job waited",
    "reserved": "reserved and not used",
    "away": "down, drained or in maintenance",
}
_NOTES: Final = (
    "Each second of each {device} is in one class; the classes add up to nodes x {device}s x time.",
    (
        "Free although jobs wait: never more than the waiting jobs request. A cause is named only where a waiting "
        "job would have fitted but for it."
    ),
)


def answer(asking: ViewQuery) -> Answer:
    """Query the balance, and the ledger for what the allocated GPUs were used for."""
    facts = ViewFacts("balance_hours_of")
    window, found = asking.window, _found(asking)
    unit = f"{found.devices[:-1]}-hours"
    columns = _columns(unit)
    by_class = found.by_class()
    machine_s = by_class.total()
    if not machine_s:
        nothing = "No node with GPUs is known: add the machine with --machine, or wait until the hub has read it."
        return Answer(facts, columns, [], [], [], nothing=nothing)
    allocated_ms = by_class[BalanceClass.ALLOCATED] * _MS
    use = window_use(asking.db, window.clusters, (window.start, window.end), asking.settings, window.now)
    use = use.bounded(allocated_ms)
    parts = _parts(by_class, use)
    facts.add("devices", found.devices, "", "what is counted")
    facts.add("machine_hours", machine_s / HOUR_S, unit, f"{unit} of the machine")
    whole = f"share of the machine's {unit}"
    facts.share("allocated_share", by_class[BalanceClass.ALLOCATED], machine_s, f"{whole} that was allocated")
    if use.uses["unknown"] < allocated_ms:
        facts.share("used_share", parts["used"], machine_s, f"{whole} with high or moderate utilization")
    for name, means in _MEANS.items():
        facts.add(f"{name}_hours", parts[name] / HOUR_S, unit, f"{unit} {means}")
    facts.share(
        "not_known_share",
        parts["not_known"],
        machine_s,
        f"{whole} in which the state of the node is not known",
    )
    causes = ranking((of, class_name(of, found.devices), by_class[of] / HOUR_S) for of in WAITED_FOR if by_class[of])
    causes.add(facts, TOP_CAUSE, unit, ("cause with most hours free although jobs wait", "its hours"))
    jobs = stranding_jobs(asking.db, found.blocked)
    _add_blocker(facts, jobs, unit)
    charts: list[Chart] = [charting.bar(parts, TITLE)]
    if causes.names:
        series = [
            Series(
                name="free although jobs wait",
                role=charting.PARTS["waited"][1],
                y=[round(hours, 3) for hours in causes.values],
            )
        ]
        charts.append(sideways(_CAUSES_TITLE, causes.names, unit, series, of="Cause"))
    charts += [*charting.blockers(jobs, unit), *charting.by_day(window, found), *charting.by_kind(found)]
    table = list(_rows(by_class, use, machine_s, found.devices))
    return Answer(facts, columns, table, charts, [*_notes(asking, found)], weight=OVERVIEW + 1)


def _columns(unit: str) -> Sequence[Column]:
    return (
        Column(name="group", title=f"{unit} that were"),
        Column(name="class", title="Class"),
        Column(name="hours", title=unit, unit=unit),
        Column(name="share", title="Share", unit="share"),
    )


def _found(asking: ViewQuery) -> WindowBalance:
    """Return the balance of the GPUs of all clusters; of their CPUs where none has GPUs."""
    window = asking.window
    clusters = {name: devices_of(asking.db, name) for name in _clusters(asking)}
    devices: Devices = "GPUs" if "GPUs" in clusters.values() else "CPUs"
    asking.asked |= {name: query_text(name) for name in ("balance_hours_of", "balance_blockers_of", "balance_waiting")}
    most = None if asking.kept is None else MOST_RUNS  # a hub counts by itself, a command waits for all of it
    found = WindowBalance(window.start, window.end, window.now, window.step, devices, most)
    for cluster in (name for name, counted in clusters.items() if counted == devices):
        add_window(asking.db, cluster, found)
    return found


def _clusters(asking: ViewQuery) -> list[str]:
    return list(asking.window.clusters) or [row["cluster"] for row in asking.rows("clusters")]


def _parts(by_class: Mapping[BalanceClass, int], use: WindowUse) -> dict[str, float]:
    """Return the GPU-seconds of the parts of the one bar."""
    parts = {name: use.uses[name] / _MS for name in USES if name not in {"high", "moderate"}}
    parts["used"] = (use.uses["high"] + use.uses["moderate"]) / _MS
    for name, classes in charting.GROUPS.items():
        if name != "allocated":
            parts[name] = sum(by_class[of] for of in classes)
    return parts


def _rows(
    by_class: Mapping[BalanceClass, int], use: WindowUse, machine_s: int, devices: Devices
) -> Iterator[list[Cell]]:
    """Yield the rows of the table; the GPU-hours add up to those of the machine."""
    for name in USES:
        if name == "unexplained":
            for cause, ms in use.causes.items():
                yield _row("allocated, wasted", cause_text(cause), ms / _MS, machine_s)
        elif use.uses[name]:
            group, _, of = USES[name].rpartition(", ")
            yield _row(f"allocated, {group}" if group else "allocated", of, use.uses[name] / _MS, machine_s)
    for group, classes in charting.GROUPS.items():
        for of in classes if group != "allocated" else ():
            if by_class[of]:
                yield _row(charting.GROUP_NAMES[group], class_name(of, devices), by_class[of], machine_s)


def _row(group: str, name: str, gpu_s: float, machine_s: int) -> list[Cell]:
    return [group, name, gpu_s / HOUR_S, gpu_s / machine_s]


def _add_blocker(facts: ViewFacts, jobs: Sequence[StrandingJob], unit: str) -> None:
    if not jobs:
        return
    job = jobs[0]
    facts.add("blocker", charting.job_words(job), "", f"job that kept most {unit} from jobs that waited")
    facts.add("blocker_hours", job.gpu_s / HOUR_S, unit, f"{unit} that it kept from jobs that waited")
    facts.add("blocker_nodes", job.nodes, "", "nodes on which it did")
    if job.share is not None and job.node_gpus:
        facts.add("blocker_share", job.share, "share", "its share of the memory or CPUs of a node")
        facts.add("blocker_what", "memory" if job.of is BalanceClass.FREE_MEMORY else "CPUs", "", "what it held")
        facts.add("blocker_gpus", f"{job.gpus} of {job.node_gpus} GPUs", "", "GPUs that it held on a node")


def _notes(asking: ViewQuery, found: WindowBalance) -> Iterator[str]:
    """Yield how it is counted, and what is estimated or assumed."""
    yield from (note.format(device=found.devices[:-1]) for note in _NOTES)
    if found.counted_from:
        since = local_time(found.counted_from, timezone(timedelta(seconds=asking.window.utc_offset_s)))
        yield f"The hub is still counting: the time before {since} is not known yet."
    for cluster in _clusters(asking):
        yield from machine_doubts(asking.db, cluster, asking.window.start)
    if found.estimated:
        share = found.estimated / max(1, found.by_class()[BalanceClass.ALLOCATED])
        yield f"{share:.0%} of the allocated hours are spread evenly over the nodes of a job.".replace("%", " %")
    if found.over:
        over = f"{found.over / HOUR_S:,.1f} {found.devices[:-1]}-hours"
        yield f"Jobs held {over} more than their nodes have; these are not counted."
