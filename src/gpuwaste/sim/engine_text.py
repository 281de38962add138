"""Text of `gpuwaste simulate --engine slurmctld`: each run, what they say together, what they do not have."""

from typing import Final

from gpuwaste.show.layout import Look, bullet, facts
from gpuwaste.show.terminal_cells import UNKNOWN, fit, one_line, percent, short
from gpuwaste.sim.real.document import EngineDocument, RealRun
from gpuwaste.sim.spread import Spread

_HEADERS: Final = ("RUN", "ENDED", "MEAN WAIT", "P50", "P95", "SLOWDOWN", "MAKESPAN", "LATE", "TOOK")
_ENDED: Final = frozenset({"COMPLETED", "TIMEOUT", "FAILED"})


def engine_text(document: EngineDocument, directory: str, look: Look) -> str:
    """Render an ensemble; `directory` keeps its runs."""
    lines = look.title(f"{fit(document.trace, 40)}: played on a real slurmctld")
    lines += facts(
        [
            ("engine", f"{document.engine}, clock x{document.speed}"),
            (
                "cluster",
                f"{fit(document.cluster, 30)}: nodes {document.nodes}, CPUs {document.cpus}, GPUs {document.gpus}",
            ),
            ("jobs", f"{document.jobs}"),
            ("mean wait", _spread(document.mean_wait_s)),
            ("95th percentile", _spread(document.p95_wait_s)),
        ]
    )
    lines += look.heading("Runs")
    lines += look.table(_HEADERS, [_row(run) for run in document.runs], frozenset({0}))
    lines += look.heading("Notes")
    if document.agreement is not None:
        near = document.agreement
        lines += bullet(
            f"Starts of one job in two runs: median difference {near.median_start_s:.0f} s, {percent(near.within_5_s)}"
            f" within 5 s, {percent(near.within_60_s)} within 60 s. A simulation cannot be nearer than that."
        )
    for run in document.runs:
        others = {state: count for state, count in run.states.items() if state not in _ENDED}
        if others:
            told = ", ".join(f"{count} {state}" for state, count in others.items())
            lines += bullet(f"Run {run.number}{'' if run.complete else ' was interrupted'}: {told}.")
    for reason, count in document.left_out.items():
        lines += bullet(f"{count} {'job is left out: it' if count == 1 else 'jobs are left out: each'} {reason}.")
    for sentence in document.not_played:
        lines += bullet(sentence)
    lines += bullet("LATE is how much later than in the trace 95 of 100 jobs were submitted at most.")
    lines += bullet(f"Jobs of each run: {one_line(directory)}/run-*.csv")
    return "\n".join(lines) + "\n"


def _row(run: RealRun) -> list[str]:
    ended = sum(count for state, count in run.states.items() if state in _ENDED)
    slowdown = UNKNOWN if run.mean_bounded_slowdown is None else f"{run.mean_bounded_slowdown:.1f}"
    return [
        f"{run.number}{'' if run.complete else '*'}",
        f"{ended}",
        short(run.mean_wait_s),
        short(run.p50_wait_s),
        short(run.p95_wait_s),
        slowdown,
        short(run.makespan_s),
        short(run.p95_submitted_late_s),
        short(run.wall_s),
    ]


def _spread(found: Spread | None) -> str:
    if found is None:
        return "unknown: no complete run"
    if found.low is None or found.high is None:
        return f"{short(found.mean)} (one run: no interval)"
    return f"{short(found.mean)} (95 % interval of the mean: {short(max(0.0, found.low))} to {short(found.high)})"
