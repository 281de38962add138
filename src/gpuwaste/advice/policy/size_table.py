"""SizeTable: the smaller requests that past runs would have fitted, as the hub found, for the line at sbatch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpuwaste.jobs.history.job_names import normal_name
from gpuwaste.ledger.right_size.size_types import SizeRow
from gpuwaste.slurm.submit.job_request import JobRequest


@dataclass(frozen=True)
class SizeTable:
    """The rows of one pass; threads may share it."""

    rows: Sequence[SizeRow]
    _of: dict[tuple[str, str, int], list[SizeRow]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Sort the rows by such jobs."""
        found: dict[tuple[str, str, int], list[SizeRow]] = {}
        for row in self.rows:
            found.setdefault((row.user, row.name, row.gpus), []).append(row)
        object.__setattr__(self, "_of", found)

    def of(self, request: JobRequest) -> list[SizeRow]:
        """Return the rows for jobs as requested, in the same partition; any type of GPU where none is requested."""
        rows = self._of.get((request.user, normal_name(request.name), request.gpus), ())
        return [row for row in rows if row.partition == request.partition and _smaller(row, request)]


def _smaller(row: SizeRow, request: JobRequest) -> bool:
    """Return whether a row requests less than a submission, or what that leaves open."""
    amounts = (
        (row.time_limit_s, request.time_limit_s), (row.mem_b, request.mem_b), (row.cpus, request.cpus)
    )  # fmt: skip
    return request.gpu_type in {"", row.gpu_type} and all(
        enough is None or asked is None or enough < asked for enough, asked in amounts
    )
