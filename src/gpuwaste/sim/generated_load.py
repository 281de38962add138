"""A load that a generator draws, and the generators by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import UsageError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.jobs.history.job_table import ABSENT, Categories, JobTable
from gpuwaste.jobs.history.outcome import outcome_of
from gpuwaste.sim import generators
from gpuwaste.sim.parameters import NamedParameters, Parameter

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Load:
    """n jobs in any order: whole seconds and processors; `user` and `account` number the submitters, from 0."""

    submit: Ints
    run_s: Ints
    limit_s: Ints
    procs: Ints
    user: Ints
    account: Ints
    processors: int

    def table(self) -> JobTable:
        """Return the jobs by submission, numbered from 1, without waits; users and accounts are numbered from 1."""
        order = np.lexsort((np.arange(len(self.submit)), self.submit))
        n = len(order)
        unknown, empty = np.full(n, np.nan), Categories(np.zeros(n, dtype=np.int32), ("",))
        procs = self.procs[order].astype(np.float64)
        submit, run = self.submit[order].astype(np.int64), self.run_s[order].astype(np.float64)
        return JobTable(
            job_id=np.arange(1, n + 1, dtype=np.int64),
            submit=submit,
            user=_numbered(self.user[order]),
            account=_numbered(self.account[order]),
            partition=empty,
            qos=empty,
            name=empty,
            gpu_type=empty,
            limit_s=self.limit_s[order].astype(np.float64),
            nodes=unknown,
            cpus=procs,
            mem_b=unknown,
            gpus=unknown,
            is_array=np.zeros(n, dtype=np.bool_),
            interactive=np.zeros(n, dtype=np.bool_),
            start=submit,
            end=submit + self.run_s[order],
            run_s=run,
            alloc_cpus=procs,
            outcome=np.full(n, outcome_of("COMPLETED", started=True), dtype=np.uint8),
            max_rss_b=unknown,
            used_ratio=unknown,
            gpus_active=unknown,
            gpu_coverage=unknown,
            ledger_at=np.full(n, ABSENT, dtype=np.int64),
            end_rule="submit + run",
        )


def _numbered(codes: Ints) -> Categories:
    numbers, places = np.unique(codes, return_inverse=True)
    return Categories(places.astype(np.int32), tuple(str(number + 1) for number in numbers.tolist()))


def limits_of(run_s: Ints, factor: float, rng: np.random.Generator) -> Ints:
    """Return time limits, at least 1 s: drawn evenly from the run time to (1 + factor) times it.

    Feitelson and Mu'alem, "Utilization and predictability in scheduling the IBM SP2 with backfilling" (1998); 0 gives
    exact limits.
    """
    return np.maximum(np.ceil(run_s * (1 + factor * rng.random(len(run_s)))), 1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class JobLog:
    """Jobs, the size of their machine where it is known, and their source, in words."""

    table: JobTable
    processors: int | None
    text: str


class Generator(Protocol):
    """A file of generators/."""

    TITLE: str
    NEEDS_LOG: bool
    PARAMETERS: Mapping[str, Parameter]

    def drawn(self, values: Mapping[str, float], log: JobLog | None) -> Load:
        """Return jobs; equal values give equal jobs."""
        ...


GENERATORS: Final[ModuleRegistry[Generator]] = ModuleRegistry(generators, "TITLE", "NEEDS_LOG", "PARAMETERS", "drawn")


def generator_parameters() -> dict[str, Mapping[str, Parameter]]:
    """Return the numbers that each generator takes."""
    return {name: generator.PARAMETERS for name, generator in GENERATORS.items()}


def generated(chosen: NamedParameters, log: JobLog | None = None) -> Load:
    """Draw a load. Raises UsageError where a log is given that is not drawn from, or missing; NoDataError."""
    generator = GENERATORS[chosen.name]
    if generator.NEEDS_LOG and log is None:
        raise UsageError(f"{chosen.name} draws from a log: give one with --swf, --sacct, --csv or --store")
    if not generator.NEEDS_LOG and log is not None:
        raise UsageError(f"{chosen.name} does not use a log: leave out --swf, --sacct, --csv and --store")
    return generator.drawn(chosen.values, log)
