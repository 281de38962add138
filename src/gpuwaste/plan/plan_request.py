"""The submission that a plan starts from: script, sbatch's arguments, the resulting request, and its predictions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpuwaste.advice.predict.prediction_types import RequestChange, TargetPrediction
from gpuwaste.jobs.program_estimate import ProgramEstimate
from gpuwaste.ledger.reports.report_types import FindingRow
from gpuwaste.plan.user_site import QueuedJobs, Site
from gpuwaste.slurm.site.limit_order import default_qos
from gpuwaste.slurm.submit.job_request import JobRequest, script_hash
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_components import read_argv
from gpuwaste.slurm.submit.sbatch_options import Given


@dataclass(frozen=True, slots=True)
class PlannedSubmission:
    """`sbatch ARGUMENTS` as a user types it; `data` is the script's bytes, b"" with --wrap."""

    words: tuple[str, ...]
    data: bytes
    environ: Mapping[str, str]
    user: str
    at: int

    @property
    def rest(self) -> tuple[str, ...]:
        """The script and its arguments, none with --wrap."""
        return read_argv(self.words).rest

    @property
    def options(self) -> tuple[str, ...]:
        """The options before the script."""
        given = self.words[: len(self.words) - len(self.rest)]
        return given[:-1] if given[-1:] == ("--",) else given

    @property
    def file(self) -> str:
        """The script's path as given, "" with --wrap."""
        return self.rest[0] if self.rest else ""

    @property
    def hash(self) -> str:
        """The script's hash, the same as in verdicts."""
        return script_hash(self.data) if self.data else ""

    def with_options(self, more: Sequence[str]) -> tuple[str, ...]:
        """Return sbatch's arguments with more options, which override those of script, environment and command line."""
        return (*self.options, *more, *self.rest)

    def read(self, more: Sequence[str] = ()) -> tuple[tuple[JobRequest, Mapping[str, Given]], ...]:
        """Return request and options of each het component. Raises ParseError, UsageError where sbatch would reject."""
        line = read_argv(self.with_options(more))
        name = Path(self.file).name if self.file else "wrap"
        found = read_submission(self.data, line, self.environ, user=self.user, submit=self.at, name=name)
        return tuple(zip(found.requests, found.options, strict=True))


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The input of each kind of candidate; `request` has the site's defaults filled in.

    `queued` reads the user's jobs of this name from Slurm when it is called.
    """

    request: JobRequest
    options: Mapping[str, Given]
    site: Site = field(default_factory=Site)
    changes: tuple[RequestChange, ...] = ()
    targets: tuple[TargetPrediction, ...] = ()
    queued: Callable[[], QueuedJobs] = QueuedJobs
    program: ProgramEstimate | None = None
    sizes: tuple[FindingRow, ...] = ()
    """What the hub found about the size of such jobs' requests."""

    @property
    def partition(self) -> str:
        """The partition of the job, the first of several."""
        return self.request.partition.split(",")[0]

    @property
    def account(self) -> str:
        """The account that the job is charged to, "" if not known."""
        return self.site.account(self.request.account, self.request.user)

    @property
    def qos(self) -> str:
        """The QOS of the job, "" if the user's association is not known."""
        found = self.site.membership(self.account, self.partition)
        return self.request.qos or (default_qos(found.default_qos, found.qos) if found else "")

    @property
    def fair_share(self) -> float | None:
        """The user's fair share in the account, None where it is unknown or has no weight in priorities."""
        return self.site.fair_share(self.account, self.request.user, self.partition)

    def target(self, name: str) -> TargetPrediction | None:
        """Return the prediction of one target."""
        return next((one for one in self.targets if one.target == name), None)
