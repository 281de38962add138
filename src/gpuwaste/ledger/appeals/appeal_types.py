"""The types of appeals beside the appeal itself (reports/job_types.py): orders, questions and lists."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, Struct

from gpuwaste.core.fields import Document, Name, Utc
from gpuwaste.ledger.reports.job_types import Appeal

MAX_WORDS: Final = 500  # characters of a reason
MAX_REPLY: Final = 1000  # characters
MAX_OPEN: Final = 20  # of one user
MAX_BODY: Final = 32 * 1024  # bytes
MAX_APPEALS: Final = 1000  # in one list
Subject = Literal["judgement", "verdict", "action"]
Decision = Literal["upheld", "dismissed"]


class AppealOrder(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/appeals."""

    job: Annotated[str, Meta(max_length=256, description="Job id as Slurm prints it, or a verdict's id.")]
    reason: Annotated[str, Meta(description=f"1 to {MAX_WORDS} characters.")]
    about: Annotated[
        Subject | None, Meta(description="null: the last action on the job if there is one, else its figures.")
    ] = None


class AppealReply(Struct, kw_only=True, forbid_unknown_fields=True):
    """The body of POST /v1/appeals/ID/reply."""

    text: Annotated[str, Meta(description=f"1 to {MAX_REPLY} characters; the user reads it.")]
    outcome: Annotated[Decision, Meta(description="upheld: the user is right.")]


@dataclass(frozen=True)
class OneAppeal:
    """Which appeal."""

    appeal_id: Annotated[str, Meta(pattern=r"^[0-9a-f]{12}$", description="An appeal's id.")]


@dataclass(frozen=True)
class AppealsQuestion:
    """Whose appeals to list, and how many."""

    user: Annotated[Name | None, Meta(description="of jobs of this user")] = None
    status: Annotated[Literal["open", "closed"] | None, Meta(description="only these")] = None
    limit: Annotated[int, Meta(ge=1, le=MAX_APPEALS, description="rows at most")] = 100


class AppealsDocument(Document, kw_only=True, frozen=True):
    """Appeals, the newest first."""

    ROWS: ClassVar[str] = "appeals"
    document: Literal["appeals"] = "appeals"
    schema: int = 1
    generated: Utc
    appeals: list[Appeal]


class AppealDocument(Document, kw_only=True, frozen=True):
    """One appeal."""

    document: Literal["appeal"] = "appeal"
    schema: int = 1
    appeal: Appeal
