"""A simulation: one trace, one machine, several schedulers, one answer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Final, NamedTuple, Protocol, TypeGuard

import numpy as np
from msgspec import to_builtins

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.version import own_version
from gpuwaste.jobs.history.job_table import JobTable
from gpuwaste.sim import schedulers
from gpuwaste.sim.believed_times import UNKNOWN
from gpuwaste.sim.document import SchedulerResult, SimulationDocument
from gpuwaste.sim.schedule_metrics import Placed, Placements, measured_energy, start_of, waits
from gpuwaste.sim.trace import GPUS, PROCESSORS, RESOURCES, Ints, Planned, Trace, left_out_of, sizes_of, trace_of
from gpuwaste.slurm.site.cluster_model import ClusterModel

USER: Final = "user"
TRUTH: Final = "truth"
RECENT: Final = "recent"
MODEL: Final = "model"
NAMED: Final = 3  # jobs that are left out, by their ids, for each reason
BELIEVED_LEVEL: Final = 0.5  # of the user's ended jobs: a believed walltime ends no job


class Scheduler(Protocol):
    """A file of schedulers/."""

    TITLE: str

    def starts(self, jobs: Planned, total: int) -> Ints:
        """Return the start of each job."""
        ...


class NodeScheduler(Protocol):
    """A file of schedulers/ that places jobs on the nodes of a cluster: NEEDS_CLUSTER is true there."""

    TITLE: str
    NEEDS_CLUSTER: bool

    def playable(self, table: JobTable, trace: Trace, cluster: ClusterModel) -> tuple[Trace, dict[str, int]]:
        """Return the jobs that can run on a cluster, and how many were left out and why."""
        ...

    def starts_on(self, table: JobTable, trace: Trace, cluster: ClusterModel, believed: Ints | None) -> Placed:
        """Play jobs that are playable, by these walltimes [n], or users' last two jobs for None."""
        ...

    def placements(
        self, table: JobTable, trace: Trace, cluster: ClusterModel, believed: Ints | None, window: tuple[int, int]
    ) -> Placements:
        """Play the same until the end of a window and return what jobs held of nodes in it."""
        ...


class Machine(NamedTuple):
    """A count of processors, and how it is known."""

    processors: int
    known_from: str


SCHEDULERS: Final[ModuleRegistry[Scheduler | NodeScheduler]] = ModuleRegistry(schedulers, "TITLE")


def machine_of(
    table: JobTable,
    given: int | None,
    header: int | None = None,
    resource: str = PROCESSORS,
    header_from: str = "the log's header",
) -> Machine:
    """Return the machine: as given, from the log's header (or the generator), else the most that was held at once.

    Raises NoDataError where none of these is known.
    """
    if given is not None:
        return Machine(given, "given")
    if header is not None and resource == PROCESSORS:
        return Machine(header, header_from)
    sizes = table.alloc_cpus if resource == PROCESSORS else sizes_of(table, resource)
    ran = (table.start >= 0) & (table.run_s > 0) & (sizes >= 1)
    if not table.wait_known or not ran.any():
        raise NoDataError(f"the machine's size is not known: give --processors, which counts {RESOURCES[resource]}s")
    begin, cpus = table.start[ran], np.ceil(sizes[ran]).astype(np.int64)
    instants = np.concatenate([begin, begin + table.run_s[ran].astype(np.int64)])
    changes = np.concatenate([cpus, -cpus])
    held = np.cumsum(changes[np.lexsort((changes, instants))])
    return Machine(int(held.max()), "the most that were held at once")


def simulate(
    table: JobTable,
    name: str,
    machine: Machine,
    chosen: Sequence[str],
    *,
    walltime: str,
    first: int | None,
    resource: str = PROCESSORS,
    past: Ints | None = None,
    steps: tuple[str, ...] = (),
    cluster: ClusterModel | None = None,
) -> tuple[SimulationDocument, Trace, dict[str, Ints | Placed]]:
    """Run the schedulers; returns the answer, the jobs and their outcome: starts, -1 for those without one.

    All of them get the same jobs: those that each one can run. `past` is what is expected of each row of the table,
    seconds, which `walltime` MODEL believes; `steps` are the earlier changes of the jobs, in words, for the answer.
    `cluster` is what schedulers need that place jobs on nodes. Raises NoDataError, UsageError, and ConfigError for
    invalid settings of the cluster.
    """
    _modules(chosen, cluster)
    without_too = resource == GPUS and not any_counts(chosen)
    trace, left_out = trace_of(table, machine.processors, resource, without_too=without_too)
    named = left_out_of(table, machine.processors, resource, without_too=without_too)
    trace, more = playable(table, trace, chosen, cluster)
    left_out |= {reason: left_out.get(reason, 0) + count for reason, count in more.items()}
    if first is not None:
        trace = trace.first(first)
    plays, stopped = _until_interrupted(played(table, trace, machine.processors, chosen, walltime, past, cluster))
    results, nodes, starts = {}, {}, {scheduler: start_of(play) for scheduler, play in plays.items()}
    base = next(iter(starts.values()))
    for scheduler, play in plays.items():
        start, ran = starts[scheduler], trace
        if isinstance(play, Placed):
            ran = replace(trace, run_s=play.run_s)
            nodes[scheduler] = play.result
        begun = np.flatnonzero(start >= 0)
        if not len(begun):
            raise NoDataError(f"--scheduler {scheduler}: no job of {len(trace)} ever starts on this machine")
        found = waits(ran.take(begun), start[begun], machine.processors)
        both = (start >= 0) & (base >= 0)
        later = None if start is base else round(float(np.mean(start[both] > base[both])), 6)
        title = SCHEDULERS[scheduler].TITLE
        results[scheduler] = SchedulerResult(**to_builtins(found), title=title, later_than_first=later)
    logged = waits(trace, trace.submit + trace.waited_s, machine.processors) if (trace.waited_s >= 0).all() else None
    document = SimulationDocument(
        version=own_version(),
        trace=name,
        trace_sha256=trace.sha256,
        processors=machine.processors,
        processors_from=machine.known_from,
        walltime=walltime,
        schedulers=results,
        left_out=left_out,
        left_out_jobs={why: table.job_id[rows[:NAMED]].tolist() for why, rows in named.items() if len(rows)},
        steps=steps,
        logged=logged,
        resource=resource,
        nodes=nodes,
        stopped=stopped,
        energy=measured_energy(table, trace),
    )
    return document, trace, plays


def places_on_nodes(scheduler: Scheduler | NodeScheduler) -> TypeGuard[NodeScheduler]:
    """Return whether a scheduler needs a cluster."""
    return bool(getattr(scheduler, "NEEDS_CLUSTER", False))


def any_counts(chosen: Sequence[str]) -> bool:
    """Return whether one of these schedulers counts what the machine has, and knows no nodes."""
    return not all(places_on_nodes(SCHEDULERS[name]) for name in chosen)


def _modules(chosen: Sequence[str], cluster: ClusterModel | None) -> dict[str, Scheduler | NodeScheduler]:
    """Return the schedulers by name. Raises UsageError for an unknown one, and for one that lacks its cluster."""
    found = {}
    for name in chosen:
        if name not in SCHEDULERS:
            raise UsageError(f"--scheduler {name[:40]}: schedulers are {', '.join(SCHEDULERS)}")
        found[name] = SCHEDULERS[name]
        if cluster is None and places_on_nodes(found[name]):
            raise UsageError(f"--scheduler {name} places jobs on nodes: describe them with --machine FILE or --live")
    return found


def playable(
    table: JobTable, trace: Trace, chosen: Sequence[str], cluster: ClusterModel | None
) -> tuple[Trace, dict[str, int]]:
    """Return the jobs that every scheduler can play on a cluster, and how many were left out and why.

    Raises NoDataError where none is left, UsageError for schedulers that lack their cluster.
    """
    counts: dict[str, int] = {}
    for module in _modules(chosen, cluster).values():
        if cluster is not None and places_on_nodes(module):
            trace, more = module.playable(table, trace, cluster)
            counts |= {reason: counts.get(reason, 0) + count for reason, count in more.items()}
    return trace, counts


def played(
    table: JobTable,
    trace: Trace,
    processors: int,
    chosen: Sequence[str],
    walltime: str,
    past: Ints | None,
    cluster: ClusterModel | None,
) -> Iterator[tuple[str, Ints | Placed]]:
    """Yield each scheduler with the outcome of the jobs, all of them playable(). Raises UsageError."""
    believed = believed_walltimes(trace, walltime, past)
    for name, found in _modules(chosen, cluster).items():
        if places_on_nodes(found):
            if cluster is not None:
                yield name, found.starts_on(table, trace, cluster, believed)
            continue
        by_user = getattr(found, "starts_by_user", None)
        if by_user is not None:
            if believed is None:
                raise UsageError(f"--scheduler {name} plans only with user or truth: leave out --walltime {walltime}")
            yield name, by_user(trace.planned(believed), processors, trace.user)
        elif isinstance(found, ModuleType):
            counted: Scheduler = found
            yield name, counted.starts(trace.planned(believed), processors)


def _until_interrupted(
    played: Iterator[tuple[str, Ints | Placed]],
) -> tuple[dict[str, Ints | Placed], str]:
    """Return what schedulers decided and, where Ctrl-C ended it after the first of them, the words for that."""
    starts: dict[str, Ints | Placed] = {}
    try:
        starts.update(played)  # pair by pair: those before an interruption stay
    except KeyboardInterrupt:
        if not starts:
            raise
        return starts, f"Interrupted: only {', '.join(starts)} was simulated."
    return starts, ""


def believed_walltimes(trace: Trace, walltime: str, past: Ints | None) -> Ints | None:
    """Return the walltime that schedulers plan with, None for the mean of each user's last two jobs."""
    if walltime == MODEL and past is not None:
        known = past[trace.row]
        return np.where(known == UNKNOWN, trace.limit_s, np.clip(known, 1, trace.limit_s))
    return {USER: trace.limit_s, TRUTH: np.maximum(trace.run_s, 1), RECENT: None}[walltime]
