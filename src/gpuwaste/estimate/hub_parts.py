"""The parts of this room that run in the hub, in the order in which their threads start."""

from typing import Final

from gpuwaste.estimate.program_runs_reads import ProgramRuns

PARTS: Final = (ProgramRuns,)
