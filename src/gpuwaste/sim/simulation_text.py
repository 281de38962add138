"""Text of `gpuwaste simulate`, with either engine: what each scheduler would have done, or the figures of real runs."""

from collections.abc import Iterator, Sequence
from typing import Final

from gpuwaste.show.layout import Column, Look
from gpuwaste.show.terminal_cells import UNKNOWN, clock, fit, one_line, percent, short
from gpuwaste.sim.difference_text import difference_text, seeds_text
from gpuwaste.sim.difference_words import energy_words, not_modelled, seeds_notes, signed_duration
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

_WALLTIMES: Final = {
    "user": "the user's limit",
    "truth": "the real run time of each job",
    "recent": "the user's last two jobs",
    "model": "the median of the user's ended jobs",
}
_MACHINES: Final = {"processors": "Processors", "gpus": "GPUs"}
_LOGGED: Final = "(the log)"
_TITLE: Final = 50  # columns of the trace in the title
_INTERVALS: Final = (
    "95 % intervals: of the difference between both runs, from 400 resamples of the trace's blocks ({}). "
    "Fewer than four blocks give no interval."
)
_MAKESPAN: Final = (
    "The makespan has no interval because it depends on a few late jobs. No change makes it shorter than the time "
    "from the first to the last submission."
)
_P95: Final = "P95: 95th percentile of the wait."
_ENDED: Final = frozenset({"COMPLETED", "TIMEOUT", "FAILED"})


def simulation_text(document: SimulationDocument, look: Look) -> str:
    """Render a simulation: what was simulated, a line for each scheduler, what was left out."""
    results = document.schedulers
    jobs = next(iter(results.values())).jobs
    lines = look.title(f"{fit(document.trace, _TITLE)}: simulation")
    lines += look.facts(
        [
            ("Jobs", f"{jobs:,}"),
            (_MACHINES[document.resource], f"{document.processors:,} ({document.processors_from})"),
            ("Time limits", _WALLTIMES.get(document.walltime, document.walltime)),
        ]
    )
    for difference in document.differences:
        lines += difference_text(difference, document.resource, look)
    lines += look.heading("What each scheduler would have done")
    lines += _schedulers(document, look)
    lines += seeds_text(document, look)
    if document.proposal is not None:
        lines += look.heading("Proposal")
        lines += look.bullet(_proposed(document.proposal))
    lines += look.heading("Notes")
    for note in _notes(document):
        lines += look.bullet(note)
    return "\n".join(lines) + "\n"


def _proposed(found: Proposal) -> str:
    ends = f"{signed_duration(found.low_s)} to {signed_duration(found.high_s)}"
    later = f"{percent(found.later)} of {found.jobs:,} jobs start later"
    return (
        f"{found.change} under {found.scheduler}: mean wait {signed_duration(found.mean_wait_s)} (95 %: {ends}), "
        f"{later}; chosen among {found.among} changes."
    )


def _notes(document: SimulationDocument) -> Iterator[str]:
    results = document.schedulers
    for name, result in results.items():
        yield f"{name}: {result.title}."
    if fit(document.trace, _TITLE) != document.trace:
        yield f"The jobs: {document.trace}."
    for step in document.steps:
        yield f"Applied to the jobs before the simulation: {step}."
    for words in left_out_words(document):
        yield f"{words}."
    first = next(iter(results))
    yield f"{_P95} SLOWDOWN: mean bounded slowdown. USED: mean share of the machine that jobs hold."
    if len(results) > 1:
        yield f"LATER: share of the jobs that start later than under {first}."
    if document.logged is not None:
        yield f"{_LOGGED}: as the jobs really started."
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


def _schedulers(document: SimulationDocument, look: Look) -> list[str]:
    """Return a row for each scheduler, and one for the starts of the log."""
    rows: dict[str, Waits] = {**document.schedulers}
    if document.logged is not None:
        rows[_LOGGED] = document.logged
    found = rows.values()
    columns = [
        Column("SCHEDULER", list(rows), left=True),
        Column("MEAN WAIT", [clock(row.mean_wait_s) for row in found]),
        Column("MEDIAN", [clock(row.p50_wait_s) for row in found], rank=4),
        Column("P95", [clock(row.p95_wait_s) for row in found], rank=1),
        Column("SLOWDOWN", [f"{row.mean_bounded_slowdown:,.1f}" for row in found], rank=5),
        Column("USED", [percent(row.utilization) for row in found], rank=2),
        Column("MAKESPAN", [clock(row.makespan_s) for row in found], rank=6, whole=True),
    ]
    if len(document.schedulers) > 1:
        columns.append(Column("LATER", [_later(row) for row in found], rank=3, whole=True))
    return look.fitted(columns)


def _later(found: Waits) -> str:
    return percent(found.later_than_first if isinstance(found, SchedulerResult) else None)


def engine_text(document: EngineDocument, directory: str, look: Look) -> str:
    """Render an ensemble; `directory` keeps its runs."""
    lines = look.title(f"{fit(document.trace, 40)}: played on a real slurmctld")
    lines += look.facts(
        [
            ("Engine", f"{document.engine}, clock x{document.speed}"),
            (
                "Cluster",
                f"{fit(document.cluster, 30)}: nodes {document.nodes}, CPUs {document.cpus}, GPUs {document.gpus}",
            ),
            ("Jobs", f"{document.jobs:,}"),
            ("Mean wait", _spread(document.mean_wait_s)),
            ("P95", _spread(document.p95_wait_s)),
        ]
    )
    lines += look.heading("Runs")
    lines += _runs_table(document.runs, look)
    lines += look.heading("Notes")
    if document.agreement is not None:
        near = document.agreement
        lines += look.bullet(
            f"Starts of one job in two runs: median difference {short(near.median_start_s)}, {percent(near.within_5_s)}"
            f" within 5 s, {percent(near.within_60_s)} within 60 s. A simulation cannot be more accurate than that."
        )
    for run in document.runs:
        others = {state: count for state, count in run.states.items() if state not in _ENDED}
        if others:
            told = ", ".join(f"{count} {state}" for state, count in others.items())
            lines += look.bullet(f"Run {run.number}{'' if run.complete else ' was interrupted'}: {told}.")
    for reason, count in document.left_out.items():
        lines += look.bullet(f"{count} {'job is left out: it' if count == 1 else 'jobs are left out: each'} {reason}.")
    for sentence in document.not_played:
        lines += look.bullet(sentence)
    lines += look.bullet(
        f"{_P95} SLOWDOWN: mean bounded slowdown. LATE: 95th percentile of the delay of submissions against the trace. "
        "TOOK: real time of the run."
    )
    lines += look.bullet(f"Jobs of each run: {one_line(directory)}/run-*.csv")
    return "\n".join(lines) + "\n"


def _runs_table(runs: Sequence[RealRun], look: Look) -> list[str]:
    ended = [sum(count for state, count in run.states.items() if state in _ENDED) for run in runs]
    slowdowns = [run.mean_bounded_slowdown for run in runs]
    return look.fitted(
        [
            Column("RUN", [f"{run.number}{'' if run.complete else '*'}" for run in runs], left=True),
            Column("ENDED", [f"{count:,}" for count in ended], rank=4),
            Column("MEAN WAIT", [clock(run.mean_wait_s) for run in runs]),
            Column("MEDIAN", [clock(run.p50_wait_s) for run in runs], rank=3),
            Column("P95", [clock(run.p95_wait_s) for run in runs], rank=1),
            Column("SLOWDOWN", [UNKNOWN if one is None else f"{one:,.1f}" for one in slowdowns], rank=5),
            Column("MAKESPAN", [clock(run.makespan_s) for run in runs], rank=6),
            Column("LATE", [clock(run.p95_submitted_late_s) for run in runs], rank=2),
            Column("TOOK", [clock(run.wall_s) for run in runs], rank=7, whole=True),
        ]
    )


def _spread(found: Spread | None) -> str:
    if found is None:
        return "unknown: no complete run"
    if found.low is None or found.high is None:
        return f"{short(found.mean)} (one run: no interval)"
    return f"{short(found.mean)} (95 % interval of the mean: {short(max(0.0, found.low))} to {short(found.high)})"
