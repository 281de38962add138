"""Finding: a named cause of waste with its evidence and what its owner can change."""

from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.slurm.run import RunKey

DIRECTIVE: Final = "#SBATCH "
"""How a line for the batch script begins; any other line is a command for a terminal."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One change of a job: what to do, as an instruction ("ask for one GPU"), and lines to copy that belong together.

    A line works as it stands, in the script of any job (`#SBATCH ...`) or at a terminal: nothing in it is to be filled
    in. What depends on the program is in the text.
    """

    text: str
    lines: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return {"text": self.text, "lines": list(self.lines)}


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with one job, or with several together, and what to change.

    `kind` is the name of the finding's file (gpus_untouched, one_gpu_of_many, ...); `evidence` holds the figures that
    the text is made of; of `fixes`, which exclude each other, one is to be chosen.
    """

    kind: str
    title: str
    runs: tuple[RunKey, ...]
    evidence: dict[str, Any]
    fixes: tuple[Fix, ...]
    wasted_gpu_s: float
    provisional: bool = False  # the job still runs: the verdict may change

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object; `fix` has the lines of the first of `fixes`, for older readers."""
        return {
            "kind": self.kind,
            "title": self.title,
            "runs": [{"cluster": r.cluster, "jobid": r.job_id, "start": r.start} for r in self.runs],
            "evidence": self.evidence,
            "fix": list(self.fixes[0].lines) if self.fixes else [],
            "fixes": [fix.to_json() for fix in self.fixes],
            "wasted_gpu_s": self.wasted_gpu_s,
            "provisional": self.provisional,
        }
