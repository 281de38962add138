"""The types of the list of verdicts: what was said at submissions, and how the jobs ended."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import UNSET, Meta, defstruct

from gpuwaste.core.codec import annotated
from gpuwaste.core.verdict import Verdict
from gpuwaste.documents.fields import Document, Recorded, Utc
from gpuwaste.documents.report_types import Dispute

SCHEMA: Final = 1
FOR_USERS: Final = (
    *("id", "at_utc_us", "op", "action", "user", "account", "partition", "qos", "name", "is_array", "gpus"),
    *("time_limit_s", "override", "lines", "job_ids", "states", "stands"),
)


@dataclass(slots=True, kw_only=True)
class JudgedVerdict(Verdict):
    """A verdict and how its job ended, as an operator sees it."""

    node: Annotated[str, Meta(description="The advisor's host.")]
    taken_utc: Annotated[int, Meta(description="When the hub took it, UTC seconds.")]
    week: Annotated[str, Meta(description="The ISO week of the submission, UTC.")]
    runs: Annotated[int, Meta(description="Runs that carry the token.")]
    hit: Annotated[bool | None, Meta(description="Whether a target that it named came true; null without an outcome.")]
    stands: Literal["rejected", "ended", "open", "no job"]
    job_ids: Annotated[list[str], Meta(description="The jobs that carry the token, as Slurm prints them.")]
    states: Annotated[list[str], Meta(description="The states of their runs.")]


if TYPE_CHECKING:

    class VerdictRow(JudgedVerdict):
        """A verdict and how its job ended; operators see every field, users what was said to them."""

else:
    VerdictRow = defstruct(
        "VerdictRow",
        [
            (part.name, kind, *(() if part.name in FOR_USERS else (UNSET,)))
            for part, kind, _ in annotated(JudgedVerdict)
        ],
        kw_only=True,
    )
    VerdictRow.__doc__ = "A verdict and how its job ended; operators see every field, users what was said to them."


class VerdictsDocument(Document, kw_only=True, frozen=True):
    """Verdicts, the newest first."""

    document: Literal["verdicts"] = "verdicts"
    schema: int = SCHEMA
    recorded: Recorded = False
    generated: Utc
    start: Utc
    end: Utc
    verdicts: list[VerdictRow]
    disputes: Annotated[list[Dispute], Meta(description="What owners said last of judgements; for operators.")] = []  # noqa: RUF012 copied
