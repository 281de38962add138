"""What of this room runs in the hub, in the order in which its threads start."""

from typing import Final

from gpuwaste.sim.kept_simulations import SimulationReads

PARTS: Final = (SimulationReads,)
