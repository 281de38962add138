"""A simulation: one trace, one machine, several schedulers, one answer."""

import importlib
import pkgutil
from collections.abc import Iterator, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

import numpy as np
from msgspec import to_builtins

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.core.version import own_version
from gpuwaste.history.table import JobTable
from gpuwaste.sim import schedulers
from gpuwaste.sim.document import SchedulerResult, SimulationDocument
from gpuwaste.sim.metrics import waits
from gpuwaste.sim.past import UNKNOWN
from gpuwaste.sim.trace import PROCESSORS, RESOURCES, Ints, Planned, Trace, sizes_of, trace_of

USER: Final = "user"
TRUTH: Final = "truth"
RECENT: Final = "recent"
MODEL: Final = "model"
BELIEVED_LEVEL: Final = 0.5  # of the user's ended jobs: a walltime that is only believed ends no job


class Scheduler(Protocol):
    """A file of schedulers/."""

    TITLE: str

    def starts(self, jobs: Planned, total: int) -> Ints:
        """Return the start of each job."""
        ...


class Machine(NamedTuple):
    """A count of processors, and how it is known."""

    processors: int
    known_from: str


@cache
def all_schedulers() -> MappingProxyType[str, Scheduler]:
    """Return the schedulers by name, which is their file's."""
    names = sorted(module.name for module in pkgutil.iter_modules(schedulers.__path__))
    return MappingProxyType({name: importlib.import_module(f"{schedulers.__name__}.{name}") for name in names})


def machine_of(table: JobTable, given: int | None, header: int | None = None, resource: str = PROCESSORS) -> Machine:
    """Return the machine to simulate: as given, as the log's header has it, else as large as was held at once.

    Raises NoDataError where none of these is known.
    """
    if given is not None:
        return Machine(given, "given")
    if header is not None and resource == PROCESSORS:
        return Machine(header, "the log's header")
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
) -> tuple[SimulationDocument, Trace, dict[str, Ints]]:
    """Run the schedulers; returns the answer, the jobs and their starts. Raises NoDataError, UsageError.

    `past` is what is expected of each row of the table, seconds, which `walltime` MODEL believes.
    """
    trace, left_out = trace_of(table, machine.processors, resource)
    if first is not None:
        trace = trace.first(first)
    starts, stopped = _until_interrupted(played(trace, machine.processors, chosen, walltime, past))
    results = {}
    base = next(iter(starts.values()))
    for scheduler, start in starts.items():
        found = waits(trace, start, machine.processors)
        later = None if start is base else round(float(np.mean(start > base)), 6)
        title = all_schedulers()[scheduler].TITLE
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
        logged=logged,
        resource=resource,
        stopped=stopped,
    )
    return document, trace, starts


def played(
    trace: Trace, processors: int, chosen: Sequence[str], walltime: str, past: Ints | None = None
) -> Iterator[tuple[str, Ints]]:
    """Yield each scheduler with the starts of the jobs. Raises UsageError."""
    believed = _believed(trace, walltime, past)
    for name in chosen:
        found = all_schedulers().get(name)
        if found is None:
            raise UsageError(f"--scheduler {name[:40]}: schedulers are {', '.join(all_schedulers())}")
        yield name, found.starts(trace.planned(believed), processors)


def _until_interrupted(played: Iterator[tuple[str, Ints]]) -> tuple[dict[str, Ints], str]:
    """Return what schedulers decided and, where Ctrl-C ended it after the first of them, the words for that."""
    starts: dict[str, Ints] = {}
    try:
        starts.update(played)  # pair by pair: those before an interruption stay
    except KeyboardInterrupt:
        if not starts:
            raise
        return starts, f"Interrupted: only {', '.join(starts)} was simulated."
    return starts, ""


def _believed(trace: Trace, walltime: str, past: Ints | None) -> Ints | None:
    """Return the walltime that schedulers plan with, None for the mean of each user's last two jobs."""
    if walltime == MODEL and past is not None:
        known = past[trace.row]
        return np.where(known == UNKNOWN, trace.limit_s, np.clip(known, 1, trace.limit_s))
    return {USER: trace.limit_s, TRUTH: np.maximum(trace.run_s, 1), RECENT: None}[walltime]
