"""The types of keeps: the order, one keep as it is stored and shown, the list, and the answer to an order."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, MaybeUtc, Name, Utc
from gpuwaste.slurm.run_key import RunKey

SHORTEST_S: Final = 60
LONGEST_S: Final = 366 * 86_400  # of the type: the site's own bound is [hub] keep_max_hours
MAX_REASON: Final = 500  # characters
MAX_BODY: Final = 16 * 1024  # bytes: a reason in which each character is six bytes of JSON, and more
MAX_RUNS: Final = 50  # running tasks of an array in one order
MAX_KEEPS: Final = 1000  # in one list


class KeepOrder(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/jobs/ID/keep."""

    seconds: Annotated[int, Meta(ge=SHORTEST_S, le=LONGEST_S, description="From now on.")]
    reason: Annotated[str, Meta(description=f"1 to {MAX_REASON} characters.")]


class KeepRow(Struct, kw_only=True, frozen=True):
    """A keep of one run."""

    id: Annotated[str, Meta(description="The same for all runs of one order.")]
    cluster: str
    job_id: int
    start: Utc
    printed_id: str
    user: Annotated[str, Meta(description="The owner of the run.")]
    account: str
    asked_by: Annotated[str, Meta(description="Whose budget it counts for: the owner, a coordinator or an operator.")]
    at: Annotated[int, Meta(description="When it was requested, UTC seconds.")]
    since: Annotated[int, Meta(description="UTC seconds; later than `at` if another keep was active until then.")]
    until: Annotated[int, Meta(description="UTC seconds.")]
    reason: str

    @property
    def run(self) -> RunKey:
        """The run that is kept."""
        return RunKey(self.cluster, self.job_id, self.start)


class KeepTooLate(Struct, kw_only=True, frozen=True):
    """An action on a kept run that had been sent before."""

    printed_id: str
    action: Annotated[str, Meta(description="Kind of action: cancel, requeue ...")]
    sent: MaybeUtc


class KeepAnswer(Document, kw_only=True, frozen=True):
    """The answer to an order."""

    document: Literal["keep"] = "keep"
    schema: int = 1
    generated: Utc
    keeps: list[KeepRow]
    stopped: Annotated[int, Meta(description="Number of waiting actions that were dropped.")]
    too_late: Annotated[list[KeepTooLate], Meta(description="Actions that were sent before: the keep stops none.")]
    left_h: Annotated[float | None, Meta(description="Hours left of the caller's budget; null: operators have none.")]
    left_keeps: Annotated[int | None, Meta(description="Keeps left of the caller's budget; null: as above.")]


@dataclass(frozen=True)
class KeepsQuestion:
    """Which keeps."""

    user: Annotated[Name | None, Meta(description="of jobs of this user")] = None
    active: Annotated[Literal["yes", "no"] | None, Meta(description="only keeps that are active, or that are over")] = (
        None
    )
    limit: Annotated[int, Meta(ge=1, le=MAX_KEEPS, description="rows at most")] = 100


class KeepsDocument(Document, kw_only=True, frozen=True):
    """Keeps, the newest first."""

    ROWS: ClassVar[str] = "keeps"
    document: Literal["keeps"] = "keeps"
    schema: int = 1
    generated: Utc
    keeps: list[KeepRow]
