"""What of this room runs in the hub, in the order in which its threads start."""

from typing import Final

from gpuwaste.estimate.program_runs_reads import ProgramRuns

PARTS: Final = (ProgramRuns,)
