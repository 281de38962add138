"""List what owners say of the judgement on their jobs, the newest first; operators see those of all users."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import quote

from msgspec import Meta

from gpuwaste.core.fields import Document, Name, Utc
from gpuwaste.core.refusal import not_found
from gpuwaste.core.scope import Scope
from gpuwaste.ledger.reports.job_types import Dispute
from gpuwaste.show.layout import Look
from gpuwaste.show.resource import FORMS, Page, PageOrder, PageRequest, ReadCommand, Reading, Resource
from gpuwaste.show.terminal_cells import fit, local_time

MAX_DISPUTES: Final = 1000
_WORDS: Final = 34  # columns of a terminal


@dataclass(frozen=True)
class DisputesQuestion:
    """Whose disputes to list, and how many."""

    user: Annotated[Name | None, Meta(description="of jobs of this user")] = None
    limit: Annotated[int, Meta(ge=1, le=MAX_DISPUTES, description="rows at most")] = 100


class DisputesDocument(Document, kw_only=True, frozen=True):
    """What owners say, the newest first."""

    ROWS: ClassVar[str] = "disputes"
    document: Literal["disputes"] = "disputes"
    schema: int = 1
    generated: Utc
    disputes: list[Dispute]


def disputes(reading: Reading, scope: Scope, question: DisputesQuestion) -> DisputesDocument:
    """List what owners say of the judgement on their jobs, the newest first: users see their own, operators all."""
    from gpuwaste.ledger.dispute_service import Disputes

    user = question.user if scope.everything else scope.user
    if not scope.everything and (not user or question.user not in {None, user}):
        raise not_found()
    found = reading.get(Disputes).newest(question.limit, user)
    return DisputesDocument(generated=reading.now(), disputes=found)


def disputes_text(document: DisputesDocument, look: Look) -> str:
    """Render the disputes as a table."""
    rows = [
        (local_time(one.at_utc, look.zone), one.printed_id, fit(one.user, 12), fit(one.words, _WORDS))
        for one in document.disputes
    ]
    lines = look.title("Disputes of judgements") if look.header else []
    lines += look.table(("TIME", "JOB", "USER", "WHAT THEY SAY"), rows, frozenset(range(4)))
    return "\n".join(lines) + "\n"


def _asked(asked: PageRequest) -> DisputesDocument:
    return disputes(asked.reading, asked.scope, DisputesQuestion())


def _page(asked: PageRequest, document: DisputesDocument) -> str:
    from gpuwaste.show.environment import page

    return page("disputes", asked.frame, document=document)


def _said(asked: PageRequest, body: bytes) -> str:
    """Store what the owner says of the judgement, and show the job again."""
    from gpuwaste.ledger.dispute_service import Disputes

    asked.reading.get(Disputes).say(asked.scope, asked.name, body)
    return f"/jobs/{quote(asked.name, safe='+')}#disputes"


RESOURCES = (
    Resource(
        path="/v1/disputes",
        question=DisputesQuestion,
        document=DisputesDocument,
        read=disputes,
        standby=True,
        commands=[
            ReadCommand(
                text=disputes_text,
                examples=(("gpuwaste disputes -u alice", "Disputes of user alice."),),
                rows="disputes",
                nothing="no disputes found",
            )
        ],
    ),
    Page(path="/disputes", document=_asked, html=_page, forms=FORMS, standby=True),
    PageOrder(path="/jobs/{job_id}/dispute", do=_said),
)
