"""What is asked of a report and of a job: the parameters of their routes, options and pages."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final

from gpuwaste.core.fields import Name, Number

if TYPE_CHECKING:
    from gpuwaste.ledger.judged_run import JudgedRun

ALL_CLUSTERS: Final = "all"
MAX_ROWS: Final = 20_000  # of a report's job table and findings: what is beyond is counted


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Which lines of the job table: those of a run with all of this; None is "any". `name` is a part of the name."""

    state: str | None = None
    partition: str | None = None
    name: str | None = None
    finding: str | None = None

    def fits(self, run: "JudgedRun") -> bool:
        """Tell whether a run has all of this (query judged_fits)."""
        return (
            self.state in {None, run.state}
            and self.partition in {None, run.partition}
            and (self.name is None or self.name.lower() in run.name.lower())
            and (self.finding is None or any(cause["kind"] == self.finding for cause in run.causes))
        )


EVERY_LINE: Final = LineFilter()


@dataclass(frozen=True, slots=True)
class ReportQuestion:
    """User or account, or neither for the caller's own; or clusters for all users.

    `cluster` is names separated by commas, or "all"; with a user or an account it keeps to these clusters.
    """

    user: Name | None = None
    account: Name | None = None
    cluster: Name | None = None
    start: Number | None = None
    end: Number | None = None
    limit: Number | None = None
    _: KW_ONLY
    offset: int = 0
    lines: LineFilter = EVERY_LINE


@dataclass(frozen=True, slots=True)
class JobQuestion:
    """What is asked of a job beside its id; None is "any".

    `owner` narrows the view to that of this user. `start` picks the runs that started then. `ended_since` picks the
    last run, unless it ended before then; of an array or a het job the last run of each task or component.
    """

    owner: Name | None = None
    cluster: Name | None = None
    start: Number | None = None
    ended_since: Number | None = None


ANY: Final = JobQuestion()
