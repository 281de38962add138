"""The generators by name, and a load drawn by one of them."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Protocol

from gpuwaste.core.errors import UsageError
from gpuwaste.sim import generators
from gpuwaste.sim.load import Load
from gpuwaste.sim.log import JobLog
from gpuwaste.sim.parameters import NamedParameters, Parameter


class Generator(Protocol):
    """A file of generators/."""

    TITLE: str
    NEEDS_LOG: bool
    PARAMETERS: Mapping[str, Parameter]

    def drawn(self, values: Mapping[str, float], log: JobLog | None) -> Load:
        """Return jobs; equal values give equal jobs."""
        ...


@cache
def all_generators() -> MappingProxyType[str, Generator]:
    """Return the generators by name, which is their file's."""
    names = sorted(module.name for module in pkgutil.iter_modules(generators.__path__))
    return MappingProxyType({name: importlib.import_module(f"{generators.__name__}.{name}") for name in names})


def generator_parameters() -> dict[str, Mapping[str, Parameter]]:
    """Return the numbers that each generator takes."""
    return {name: generator.PARAMETERS for name, generator in all_generators().items()}


def generated(chosen: NamedParameters, log: JobLog | None = None) -> Load:
    """Draw a load. Raises UsageError where a log is given that is not drawn from, or missing; NoDataError."""
    generator = all_generators()[chosen.name]
    if generator.NEEDS_LOG and log is None:
        raise UsageError(f"{chosen.name} draws from a log: name one with --swf, --sacct, --csv or --store")
    if not generator.NEEDS_LOG and log is not None:
        raise UsageError(f"{chosen.name} draws from no log: leave out --swf, --sacct, --csv and --store")
    return generator.drawn(chosen.values, log)
