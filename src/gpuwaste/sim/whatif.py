"""A what-if: the same jobs under a change of requests, limits, policies or the machine."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuwaste.core.errors import NoDataError, UsageError
from gpuwaste.history.table import JobTable
from gpuwaste.sim import whatifs
from gpuwaste.sim.trace import Ints, Trace

MOST: Final = 8  # what-ifs of one simulation
Refused = Callable[[], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Case:
    """What a what-if changes: the base's jobs and machine; `resource` is what the sizes of both count.

    `table` is what `trace.row` is a place in. `history` is all that may be learnt from, and `places` the place of each
    of the table's rows in it. `refused` returns which rows of the table policies would have rejected; None where no
    policies are given.
    """

    table: JobTable
    trace: Trace
    processors: int
    resource: str
    history: JobTable
    places: NDArray[np.intp]
    refused: Refused | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The changed jobs, some or all of the base's, and the machine; `facts` are counts by name, `notes` sentences.

    `unfit` are the rows of jobs that were left out because they do not fit the machine.
    """

    trace: Trace
    processors: int
    facts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unfit: Ints | None = None


class WhatIf(Protocol):
    """A file of whatifs/."""

    TITLE: str
    VALUE: str

    def change(self, case: Case, value: str) -> Change:
        """Return the changed jobs and machine."""
        ...


@cache
def all_whatifs() -> MappingProxyType[str, WhatIf]:
    """Return the what-ifs by name, which is their file's."""
    names = sorted(module.name for module in pkgutil.iter_modules(whatifs.__path__))
    return MappingProxyType({name: importlib.import_module(f"{whatifs.__name__}.{name}") for name in names})


def parsed(words: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return name and value of each what-if. Raises UsageError."""
    if len(words) > MOST:
        raise UsageError(f"--what-if: {len(words)} changes: expected at most {MOST}")
    found = []
    for word in dict.fromkeys(words):
        name, given, value = word.partition("=")
        whatif = all_whatifs().get(name)
        if whatif is None:
            raise UsageError(f"--what-if {word[:40]!r}: expected one of {', '.join(all_whatifs())}")
        if given and not whatif.VALUE:
            raise UsageError(f"--what-if {word[:40]!r}: {name} takes no value")
        found.append((name, value))
    return tuple(found)


def changed(case: Case, name: str, value: str) -> Change:
    """Return what a what-if makes of a case; jobs that do not fit the changed machine are left out and counted.

    Raises UsageError, NoDataError.
    """
    found = all_whatifs()[name].change(case, value)
    fits = found.trace.procs <= found.processors
    facts = dict(found.facts)
    if not fits.all():
        facts["jobs larger than the changed machine"] = int(np.count_nonzero(~fits))
    if not fits.any():
        raise NoDataError(f"--what-if {name}: no job would be left to simulate")
    return Change(found.trace.take(np.flatnonzero(fits)), found.processors, facts, found.notes, found.trace.row[~fits])
