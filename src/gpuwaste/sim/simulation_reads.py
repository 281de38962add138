"""What /simulations shows: simulations that `gpuwaste simulate --save` wrote beside the store, for operators."""

from pathlib import Path
from typing import Self

from gpuwaste.core.config import Config
from gpuwaste.core.errors import NoDataError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import FORBIDDEN, NOT_FOUND, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.sim import kept_simulations
from gpuwaste.sim.kept_simulations import DIRECTORY, KeptEntry, KeptSimulation


class SimulationReads(Part):
    """Reads kept simulations; blocks on files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(Path(parts.get(Config).hub.state_dir) / DIRECTORY)

    def listed(self, scope: Scope) -> list[KeptEntry]:
        """Return what is kept, newest first. Raises Refusal 403 for ordinary users."""
        _allow(scope)
        return kept_simulations.listed(self._directory)

    def one(self, scope: Scope, identity: str) -> KeptSimulation:
        """Return one. Raises Refusal: 403 for ordinary users, 404 where it is not kept; StoreError for a bad file."""
        _allow(scope)
        try:
            return kept_simulations.read(self._directory, identity)
        except NoDataError as error:
            raise Refusal(NOT_FOUND, "no simulation is saved under this id") from error


def _allow(scope: Scope) -> None:
    if not scope.everything:
        raise Refusal(FORBIDDEN, "simulations are for operators")
