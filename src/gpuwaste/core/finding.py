"""Finding: a named cause of waste with its evidence and the line that fixes it."""

from dataclasses import dataclass
from typing import Any

from gpuwaste.core.run import RunKey


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with one job, or with several together, and what to change.

    `kind` is the name of the finding's file (gpus_untouched, one_gpu_of_many, ...); `evidence` holds the figures that
    the text is made of; `fix` holds lines to copy, as #SBATCH or framework lines.
    """

    kind: str
    title: str
    runs: tuple[RunKey, ...]
    evidence: dict[str, Any]
    fix: tuple[str, ...]
    wasted_gpu_s: float
    provisional: bool = False  # the job still runs: the verdict may change

    def to_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {
            "kind": self.kind,
            "title": self.title,
            "runs": [{"cluster": r.cluster, "jobid": r.job_id, "start": r.start} for r in self.runs],
            "evidence": self.evidence,
            "fix": list(self.fix),
            "wasted_gpu_s": self.wasted_gpu_s,
            "provisional": self.provisional,
        }
