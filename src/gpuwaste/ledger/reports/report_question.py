"""The questions to reports and jobs: the parameters of their routes, options and pages."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Final

from gpuwaste.core.fields import Name, Number

if TYPE_CHECKING:
    from gpuwaste.ledger.judged_run import JudgedRun

ALL_CLUSTERS: Final = "all"
MAX_ROWS: Final = 20_000  # of a report's job table and findings: further ones are only counted


@dataclass(frozen=True, slots=True)
class LineFilter:
    """Which lines of the job table: runs that match all fields; None is "any". `name` is a part of the name."""

    state: str | None = None
    partition: str | None = None
    name: str | None = None
    finding: str | None = None

    def fits(self, run: "JudgedRun") -> bool:
        """Return whether a run matches all fields (query judged_fits)."""
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

    `cluster` is names separated by commas, or "all"; with a user or an account it restricts the report to these.
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
    """The parameters of a job in addition to its id; None is "any".

    `owner` narrows the view to that of this user. `start` picks the runs that started then. `ended_since` picks the
    last run, unless it ended before then; of an array or a het job the last run of each task or component.
    """

    owner: Name | None = None
    cluster: Name | None = None
    start: Number | None = None
    ended_since: Number | None = None


ANY: Final = JobQuestion()
