"""Text of `gpuwaste simulate`, with either engine: what each scheduler would have done, or the figures of real runs."""

from collections.abc import Iterator
from typing import Final

from gpuwaste.show.layout import Look, bullet, facts
from gpuwaste.show.terminal_cells import UNKNOWN, clock, fit, one_line, percent, short
from gpuwaste.sim.difference_words import difference_text, energy_words, not_modelled, seeds_notes, seeds_text
from gpuwaste.sim.document import (
    NodesResult,
    Proposal,
    SchedulerResult,
    SimulationDocument,
    Spread,
    Waits,
    left_out_words,
)
from gpuwaste.sim.real.ensemble_document import EngineDocument, RealRun

_HEADERS: Final = ("SCHEDULER", "MEAN WAIT", "P50", "P95", "SLOWDOWN", "USED", "MAKESPAN", "LATER")
_WALLTIMES: Final = {
    "user": "the user's limit",
    "truth": "what each job ran",
    "recent": "the user's last two jobs",
    "model": "the median of the user's ended jobs",
}
_MACHINES: Final = {"processors": "processors", "gpus": "GPUs"}
_LOGGED: Final = "(the log)"
_TITLE: Final = 50  # columns of the trace in the title
_INTERVALS: Final = (
    "Intervals of 95 %: differences between both runs when the trace's blocks ({}) are drawn again, 400 times. "
    "No figure has one for fewer than four blocks."
)
_MAKESPAN: Final = (
    "The makespan ends with the last job, so it has no interval: a few late jobs decide it. It is never shorter than "
    "the time from the first to the last submission, which no change shortens."
)
_ENGINE_HEADERS: Final = ("RUN", "ENDED", "MEAN WAIT", "P50", "P95", "SLOWDOWN", "MAKESPAN", "LATE", "TOOK")
_ENDED: Final = frozenset({"COMPLETED", "TIMEOUT", "FAILED"})


def simulation_text(document: SimulationDocument, look: Look) -> str:
    """Render a simulation: what was simulated, a line for each scheduler, what was left out."""
    results = document.schedulers
    jobs = next(iter(results.values())).jobs
    lines = look.title(f"{fit(document.trace, _TITLE)}: simulation")
    lines += facts(
        [
            ("jobs", f"{jobs}"),
            (_MACHINES[document.resource], f"{document.processors} ({document.processors_from})"),
            ("walltime", _WALLTIMES.get(document.walltime, document.walltime)),
        ]
    )
    rows = [_row(name, result) for name, result in results.items()]
    if document.logged is not None:
        rows.append(_row(_LOGGED, document.logged))
    for difference in document.differences:
        lines += difference_text(difference, document.resource, look)
    lines += look.heading("What each scheduler would have done")
    lines += look.table(_HEADERS, rows, frozenset({0}))
    lines += seeds_text(document, look)
    if document.proposal is not None:
        lines += look.heading("Proposal")
        lines += bullet(_proposed(document.proposal))
    lines += look.heading("Notes")
    for note in _notes(document):
        lines += bullet(note)
    return "\n".join(lines) + "\n"


def _proposed(found: Proposal) -> str:
    waits = f"mean wait {_changed(found.mean_wait_s)} ({_changed(found.low_s)} to {_changed(found.high_s)})"
    later = f"{percent(found.later)} of {found.jobs} jobs start later"
    return f"{found.change} under {found.scheduler}: {waits}, {later}; chosen among {found.among} changes."


def _changed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{short(abs(seconds))}"


def _notes(document: SimulationDocument) -> Iterator[str]:
    results = document.schedulers
    for name, result in results.items():
        yield f"{name}: {result.title}."
    if fit(document.trace, _TITLE) != document.trace:
        yield f"The jobs: {document.trace}."
    for step in document.steps:
        yield f"The jobs were changed first: {step}."
    for words in left_out_words(document):
        yield f"{words}."
    first = next(iter(results))
    yield f"SLOWDOWN is the mean bounded slowdown; LATER counts jobs that start later than under {first}."
    if document.differences:
        yield _INTERVALS.format(document.differences[0].blocks)
        yield _MAKESPAN
    yield from energy_words(document)
    yield from seeds_notes(document)
    if document.stopped:
        yield document.stopped
    for name, found in document.nodes.items():
        yield _on_nodes(name, found)
    yield from not_modelled(document)


def _on_nodes(name: str, found: NodesResult) -> str:
    gpus = [f"GPUs {fit(kind, 20)} used {percent(share)}" for kind, share in found.gpu_utilization.items()]
    facts = {"requeued": found.requeued, "ended early": found.cut_short, "never started": found.never_started}
    facts |= {f"held by {reason}": count for reason, count in found.held.items()}
    return f"{name}: {', '.join([*gpus, *(f'jobs {what}: {count}' for what, count in facts.items())])}."


def _row(name: str, found: Waits) -> list[str]:
    later = found.later_than_first if isinstance(found, SchedulerResult) else None
    return [
        name,
        clock(found.mean_wait_s),
        clock(found.p50_wait_s),
        clock(found.p95_wait_s),
        f"{found.mean_bounded_slowdown:.1f}",
        percent(found.utilization),
        clock(found.makespan_s),
        UNKNOWN if later is None else percent(later),
    ]


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
    lines += look.table(_ENGINE_HEADERS, [_run_row(run) for run in document.runs], frozenset({0}))
    lines += look.heading("Notes")
    if document.agreement is not None:
        near = document.agreement
        lines += bullet(
            f"Starts of one job in two runs: median difference {near.median_start_s:.0f} s, {percent(near.within_5_s)}"
            f" within 5 s, {percent(near.within_60_s)} within 60 s. A simulation cannot be more accurate than that."
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
    lines += bullet("LATE is the 95th percentile of how much later than in the trace jobs were submitted.")
    lines += bullet(f"Jobs of each run: {one_line(directory)}/run-*.csv")
    return "\n".join(lines) + "\n"


def _run_row(run: RealRun) -> list[str]:
    ended = sum(count for state, count in run.states.items() if state in _ENDED)
    slowdown = UNKNOWN if run.mean_bounded_slowdown is None else f"{run.mean_bounded_slowdown:.1f}"
    return [
        f"{run.number}{'' if run.complete else '*'}",
        f"{ended}",
        clock(run.mean_wait_s),
        clock(run.p50_wait_s),
        clock(run.p95_wait_s),
        slowdown,
        clock(run.makespan_s),
        clock(run.p95_submitted_late_s),
        clock(run.wall_s),
    ]


def _spread(found: Spread | None) -> str:
    if found is None:
        return "unknown: no complete run"
    if found.low is None or found.high is None:
        return f"{short(found.mean)} (one run: no interval)"
    return f"{short(found.mean)} (95 % interval of the mean: {short(max(0.0, found.low))} to {short(found.high)})"
