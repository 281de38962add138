"""/jobs/ID: how a job used its GPUs, why, and what to change; /helpdesk: the same with a reply to its owner."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote, urlencode

from markupsafe import Markup

from gpuwaste.core.errors import ParseError
from gpuwaste.core.text import harmless
from gpuwaste.core.units import GpuTimeUnit
from gpuwaste.ledger.curves.curve_types import MOST_NODES, MOST_RUNS
from gpuwaste.ledger.energy.energy_text import energy_words
from gpuwaste.ledger.evidence_words import evidence_of
from gpuwaste.ledger.fix_words import fix_steps
from gpuwaste.ledger.level_charts import Span
from gpuwaste.ledger.reports.accounted_rows import accounted_words
from gpuwaste.ledger.reports.job_types import DeviceRow, HourCell, JobDocument, Neighbours, RunRow
from gpuwaste.ledger.reports.predicted_times import SHOWN, predicted_times
from gpuwaste.ledger.reports.report_types import FindingRow
from gpuwaste.ledger.reports.resource_use import comparisons
from gpuwaste.show.environment import Frame, page
from gpuwaste.show.page_words import cut, share
from gpuwaste.slurm.formats.hostlist import expand

TRACKS: Final = 64
QUANTITIES: Final = (
    ("util_pct", "Utilization"),
    ("mem_used_b", "GPU memory"),
    ("power_w", "Power"),
    ("sm_pct", "Multiprocessors"),
    ("cpus", "CPUs"),
)
"""The curves that can be shown, by their names in curves.js."""
_MOST_NAMED: Final = 4096
_MUCH: Final = 0.1  # of the GPU-time: less waste needs no cause
_FINDINGS: Final = 3
_EVIDENCE: Final = 8
_FIXES: Final = 4


@dataclass(frozen=True, slots=True)
class Track:
    """One GPU of a run with its use over time."""

    name: str
    run: int  # its place in the document
    device: DeviceRow
    cells: Sequence[HourCell]
    ran: Span


def job_page(document: JobDocument, frame: Frame, node: str = "") -> str:
    """Return the page of a job's runs: their GPUs on one time axis, with `node` only those of that node."""
    path = f"/jobs/{document.printed_id}"
    runs = document.runs
    nodes, asked = _nodes(runs), f"?{urlencode({'node': node})}" if node else ""
    tracks = [track for track in _tracks(document) if not node or track.device.node == node]
    started = [run for run in runs if run.start is not None]
    start = min((run.start or 0 for run in started), default=document.generated)
    states = Counter(run.state for run in runs)
    unit = GpuTimeUnit.of([_sum(runs, "gpu_s")])
    return page(
        "job",
        replace(frame, links={"csv": f"{path}.csv", "json": f"{path}.json"}),
        document=document,
        first=runs[0],
        sentence=job_sentence(document),
        explained=bool(_cause_of(document)),
        unit=unit,
        tracks=tracks[:TRACKS],
        gpus=len(tracks),
        node=node,
        nodes=sorted(set(nodes))[:_MOST_NAMED] if node or len(nodes) > MOST_NODES else [],
        start=start,
        end=max((run.end or document.generated for run in started), default=start),
        running=any(run.running for run in runs),
        keepable=any(run.end is None and (frame.operator or run.user == frame.user) for run in runs),
        own=any(run.user == frame.user and run.start is not None for run in runs),
        comparisons=comparisons(runs[0]),
        held_cpus=runs[0].cpus if len(runs) == 1 and len(nodes) == 1 else None,
        energy=energy_words(runs[0].energy),
        drawn=_drawn(runs, tracks),
        curves=f"{path}/curves.json{asked}" if started else "",
        changes=f"{quote(path, safe='/+')}/changes?after={frame.place}" if any(run.end is None for run in runs) else "",
        quantities=QUANTITIES,
        evidence_of=evidence_of,
        beside=document.neighbours,
        beside_sentence=_beside(document.neighbours),
        accounted=[words for run in runs[:_FIXES] for words in accounted_words(run)],
        predicted=predicted_times(document),
        predicted_of=SHOWN,
        states=", ".join(f"{count} {state.lower().replace('_', ' ')[:40]}" for state, count in states.most_common(6)),
        exempt_s=_sum(runs, "exempt_s"),
        exempt_reasons=sorted({reason for run in started for reason in run.totals.exempt_by_reason_s}),
    )


def _drawn(runs: Sequence[RunRow], tracks: Sequence[Track]) -> int:
    """Return how many of these GPUs have curves: those of the newest runs."""
    places = sorted(range(len(runs)), key=lambda place: runs[place].start or 0, reverse=True)[:MOST_RUNS]
    return sum(track.run in places for track in tracks)


def job_sentence(document: JobDocument) -> str:
    """Return one sentence: how much of a job's GPU-time was idle without being exempt, and why."""
    runs = document.runs
    job = f"Job {document.printed_id} {cut(runs[0].name)}".rstrip()
    started = [run for run in runs if run.start is not None]
    if not started:
        return f"{job} has not started."
    gpu_s, idle_s = _sum(runs, "gpu_s"), _idle_s(runs)
    if not gpu_s:
        return f"{job} held no GPU of its own."
    if not any(run.totals.coverage for run in started):
        mean = _told_mean(started)
        return f"{job}: " + ("the use of its GPUs is unknown." if mean is None else f"mean use {mean}, by jobstats.")
    so_far = " so far" if any(run.running for run in started) else ""
    unit = GpuTimeUnit.of([gpu_s])
    if not idle_s:
        return f"{job}: none of its {unit.words(gpu_s)} were idle{so_far}."
    hours = f"{unit.number(idle_s)} of its {unit.words(gpu_s)}"
    idle = f"{job}: {hours} were idle{so_far} ({share(idle_s, gpu_s)})"
    cause = _cause_of(document)
    return f"{idle}: {cause}." if cause else f"{idle}."


def _told_mean(runs: Sequence[RunRow]) -> str | None:
    """Return the mean use over the GPUs of runs of which no hours are known; None where a mean is missing."""
    means = [(device.mean_util_pct, device.gpu_s) for run in runs for device in run.devices]
    if not means or any(mean is None for mean, _ in means):
        return None
    return share(sum((mean or 0.0) / 100 * gpu_s for mean, gpu_s in means), sum(gpu_s for _, gpu_s in means))


def _cause_of(document: JobDocument) -> str:
    """Return the cause of the largest waste, without its remedy; "" where little was wasted or no cause is known."""
    gpu_s, idle_s = _sum(document.runs, "gpu_s"), _idle_s(document.runs)
    if not document.findings or not gpu_s or idle_s < _MUCH * gpu_s:
        return ""
    return document.findings[0].title.partition(": ")[0][:200]


def _idle_s(runs: Sequence[RunRow]) -> float:
    """Return the wasted GPU-seconds that are not exempt."""
    return _sum(runs, "wasted_s") - _sum(runs, "exempt_s")


def _beside(found: Neighbours | None) -> str:
    """Return a sentence: how many runs shared the nodes, and how many of them the reader may not see."""
    if found is None:
        return ""
    if not found.runs:
        return "No other job ran on these nodes at the same time."
    at_least = "" if found.complete else "At least "
    counted = "1 other job" if found.runs == 1 else f"{found.runs} other jobs"
    sentence = f"{at_least}{counted} ran on these nodes at the same time"
    visible = found.runs - found.others
    if not visible:
        return f"{sentence}, of other users."
    parts = [f"{found.others} of other users" if found.others else ""]
    parts.append(f"the first {len(found.listed)} are listed" if visible > len(found.listed) else "")
    return "; ".join(part for part in [sentence, *parts] if part) + "."


def _sum(runs: Sequence[RunRow], name: str) -> float:
    return sum(float(getattr(run.totals, name)) for run in runs if run.start is not None)


def _tracks(document: JobDocument) -> list[Track]:
    """Return the GPUs of all runs, numbered within each."""
    cells = {(of.cluster, of.job_id, of.start, of.node, of.gpu_uuid): of.cells for of in document.hours}
    several = len(document.runs) > 1
    return [
        Track(
            f"{run.printed_id} GPU {place}" if several else f"GPU {place}",
            number,
            device,
            cells.get((run.cluster, run.job_id, run.start or 0, device.node or "", device.gpu_uuid or ""), ()),
            (run.start or 0, run.end or document.generated),
        )
        for number, run in enumerate(document.runs)
        for place, device in enumerate(sorted([*run.devices, *run.shared], key=_place))
    ]


def _nodes(runs: Sequence[RunRow]) -> list[str]:
    """Return the nodes of each run."""
    found: list[str] = []
    for run in runs:
        with suppress(ParseError):
            found += expand(run.nodes)
    return found


def _place(device: DeviceRow) -> tuple[bool, str, str]:
    """Return the sort key of a run's GPUs; those that no agent reported are last."""
    return not device.gpu_uuid, device.node or "", device.gpu_uuid or ""


def helpdesk_page(document: JobDocument | None, url: str, frame: Frame) -> str:
    """Return the page: only the form, or with the answer for a job; `url` is the base of the pages, "" if unknown."""
    answer = None if document is None else {"document": document, "reply": reply(document, url)}
    sentence = "Help desk: what did a job waste, and why?" if document is None else job_sentence(document)
    return page("helpdesk", frame, sentence=sentence, answer=answer, evidence_of=evidence_of)


def reply(document: JobDocument, url: str) -> Markup:
    """Return a reply to the owner of a job: plain text, escaped, without control characters in the lines."""
    findings = document.findings[:_FINDINGS]
    lines = [f"Hello {cut(document.runs[0].user)},", "", job_sentence(document), ""]
    for finding in findings:
        lines += [*_cause(finding), ""]
    if not findings:
        lines += ["gpuwaste found no cause of waste in this job.", ""]
    where = f"{url}/jobs/{document.printed_id}" if url else f"gpuwaste job {document.printed_id}"
    lines.append(f"All figures of the job: {where}")
    return Markup("\n").join(map(harmless, lines))


def _cause(finding: FindingRow) -> list[str]:
    """Return the cause, its evidence and the proposed changes."""
    lines = [f"Cause: {cut(finding.title, 200)}."]
    lines += [f"  {name}: {value}" for name, value in evidence_of(finding)[:_EVIDENCE]]
    for step in fix_steps(finding.fixes[:_FIXES]):
        lines += [cut(step.text, 400), *(f"  {cut(line, 400)}" for line in step.lines[:_FIXES])]
    return lines
