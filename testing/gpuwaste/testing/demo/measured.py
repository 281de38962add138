"""What each job of the demo did, by its load programs' own logs: what a finding's check is held against.

A program is told what to do, and on a busy host it may not get to it: one that is told to keep its CPU busy has what
the other processes leave it. The plan says which finding a job was made for; these measurements say whether it is due.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.agent.accumulator import IDLE_RUN_MS
from gpuwaste.ledger.findings.cpu_starved import SATURATED
from gpuwaste.testing.demo.jobs import DemoJob
from gpuwaste.testing.simnvml import OracleEvent

CPU_MARGIN: Final = 0.05
"""Of the CPUs' time: the batch script's own, and accounting's whole seconds of a run of 40 s."""
RUN_OF_ZEROS_S: Final = IDLE_RUN_MS / 1000
"""A GPU that reads 0 % for less is not wasted."""
_OF_THE_END: Final = frozenset({"idle_tail", "idle_interactive"})


@dataclass(frozen=True, slots=True)
class Due:
    """The finding of a job: the kinds that may be said of it ("" for none), and what was measured, in words."""

    kinds: frozenset[str]
    measured: str

    @property
    def text(self) -> str:
        """The truth as the demo's table shows it."""
        kinds = " or ".join(sorted(kind or "none" for kind in self.kinds))
        return f"{kinds} ({self.measured})" if self.measured else kinds


def due(job: DemoJob, runs: Sequence[Mapping[str, Any]], events: Iterable[OracleEvent], tolerance_s: float) -> Due:
    """Return the finding that is due to a job with these runs (documents of `gpuwaste job`).

    `tolerance_s` is the error of a stretch that is sampled. A log without CPU time (a recording) leaves the plan.
    """
    raw_ids = {run["raw_id"] for run in runs}
    mine = [event for event in events if event.job_id in raw_ids]
    if "cpu_starved" in {job.finding, job.near}:
        return _of_cpus(job, runs[-1], mine)
    if _OF_THE_END & {job.finding, job.near}:
        return _of_idle(job, runs[-1], mine, tolerance_s)
    return Due(frozenset({job.finding}), "")


def _of_cpus(job: DemoJob, run: Mapping[str, Any], events: Sequence[OracleEvent]) -> Due:
    share = cpu_share(events, run["cpus"] or 1)
    if share is None:
        return Due(frozenset({job.finding}), "")
    return _decided("cpu_starved", share - SATURATED, CPU_MARGIN, f"its CPU {share:.0%} busy")


def _of_idle(job: DemoJob, run: Mapping[str, Any], events: Sequence[OracleEvent], tolerance_s: float) -> Due:
    """Decide by the time after the last work; what no agent saw of it may belong to either side."""
    stopped = [event.t_utc for event in events if event.util == 0 or event.event == "end"]
    if not stopped:
        return Due(frozenset({job.finding}), "")
    idle_s = run["end"] - min(stopped)
    unknown_s = max(device["unknown_s"] for device in run["devices"])
    kind = job.finding or job.near
    return _decided(kind, idle_s - RUN_OF_ZEROS_S, tolerance_s + unknown_s, f"idle {idle_s:.1f} s at the end")


def _decided(kind: str, beyond: float, margin: float, measured: str) -> Due:
    """Return what is due of a figure that lies so far beyond its threshold: within the margin either is right."""
    if abs(beyond) <= margin:
        return Due(frozenset({kind, ""}), measured)
    return Due(frozenset({kind if beyond > 0 else ""}), measured)


def cpu_share(events: Sequence[OracleEvent], cpus: int) -> float | None:
    """Return the CPU time of a load program over its time and `cpus` CPUs; None where its log does not say."""
    known = [(event.mono, event.cpu_s) for event in events if event.cpu_s is not None]
    if len(known) < 2:  # noqa: PLR2004 a time needs two ends
        return None
    (began, before_s), (ended, after_s) = min(known), max(known)
    return (after_s - before_s) / (ended - began) / cpus if ended > began else None
