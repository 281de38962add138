"""The generators by name, and a load drawn by one of them."""

from collections.abc import Mapping
from typing import Final, Protocol

from gpuwaste.core.errors import UsageError
from gpuwaste.core.registry import ModuleRegistry
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


GENERATORS: Final[ModuleRegistry[Generator]] = ModuleRegistry(generators, "TITLE", "NEEDS_LOG", "PARAMETERS", "drawn")


def generator_parameters() -> dict[str, Mapping[str, Parameter]]:
    """Return the numbers that each generator takes."""
    return {name: generator.PARAMETERS for name, generator in GENERATORS.items()}


def generated(chosen: NamedParameters, log: JobLog | None = None) -> Load:
    """Draw a load. Raises UsageError where a log is given that is not drawn from, or missing; NoDataError."""
    generator = GENERATORS[chosen.name]
    if generator.NEEDS_LOG and log is None:
        raise UsageError(f"{chosen.name} draws from a log: name one with --swf, --sacct, --csv or --store")
    if not generator.NEEDS_LOG and log is not None:
        raise UsageError(f"{chosen.name} draws from no log: leave out --swf, --sacct, --csv and --store")
    return generator.drawn(chosen.values, log)
