"""List what owners of jobs contest, and the replies, the newest first; operators see the appeals of all users."""

from typing import TYPE_CHECKING
from urllib.parse import quote

from gpuwaste.core.order_body import read_order
from gpuwaste.core.refusal import BAD, Refusal, not_found
from gpuwaste.core.scope import Scope
from gpuwaste.ledger.appeals.appeal_text import appeals_text
from gpuwaste.ledger.appeals.appeal_types import (
    MAX_BODY,
    AppealDocument,
    AppealOrder,
    AppealReply,
    AppealsDocument,
    AppealsQuestion,
    Decision,
    OneAppeal,
)
from gpuwaste.show.resource import (
    FORMS,
    NoQuestion,
    Order,
    Page,
    PageOrder,
    PageRequest,
    ReadCommand,
    Reading,
    Resource,
)

if TYPE_CHECKING:
    from gpuwaste.ledger.appeals.appeal_service import Appeals


def _service(reading: Reading) -> "Appeals":
    from gpuwaste.ledger.appeals.appeal_service import Appeals

    return reading.get(Appeals)


def appeals(reading: Reading, scope: Scope, question: AppealsQuestion) -> AppealsDocument:
    """List appeals, the newest first: users see their own, operators and staff all, with the evidence."""
    from gpuwaste.ledger.appeals.appeal_store import AppealPick

    user = question.user if scope.everything else scope.user
    if not scope.everything and (not user or question.user not in {None, user}):
        raise not_found()
    pick = AppealPick(question.limit, user, question.status)
    found = _service(reading).listed(pick, staff=scope.everything)
    return AppealsDocument(generated=reading.now(), appeals=found)


def appeal(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> AppealDocument:
    """Say that the figures of an own job, advice at sbatch or an action of a rule are wrong."""
    return AppealDocument(appeal=_service(reading).appeal(scope, read_order(body, AppealOrder, MAX_BODY)))


def reply(reading: Reading, scope: Scope, question: OneAppeal, body: bytes) -> AppealDocument:
    """Close an appeal with a reply to the user; for Slurm's operators and administrators."""
    return AppealDocument(
        appeal=_service(reading).reply(scope, question.appeal_id, read_order(body, AppealReply, MAX_BODY))
    )


def _asked(asked: PageRequest) -> AppealsDocument:
    return appeals(asked.reading, asked.scope, AppealsQuestion())


def _page(asked: PageRequest, document: AppealsDocument) -> str:
    from gpuwaste.show.environment import page

    return page("appeals", asked.frame, document=document, may_reply=asked.scope.operator)


def _appealed(asked: PageRequest, body: bytes) -> str:
    """Store what the owner says of the job, and show the job again."""
    from gpuwaste.ledger.appeals.appeal_service import form_fields

    words = form_fields(body).get("words", "")
    _service(asked.reading).appeal(asked.scope, AppealOrder(job=asked.name[:256], reason=words))
    return f"/jobs/{quote(asked.name, safe='+')}#appeals"


def _replied(asked: PageRequest, body: bytes) -> str:
    """Close an appeal by the form of the page, and show the appeals again."""
    from gpuwaste.ledger.appeals.appeal_service import form_fields

    fields = form_fields(body)
    if fields.get("outcome") not in {"upheld", "dismissed"}:
        raise Refusal(BAD, "outcome: expected upheld or dismissed")
    outcome: Decision = "upheld" if fields["outcome"] == "upheld" else "dismissed"
    _service(asked.reading).reply(asked.scope, asked.name, AppealReply(text=fields.get("text", ""), outcome=outcome))
    return "/appeals"


RESOURCES = (
    Resource(
        path="/v1/appeals",
        question=AppealsQuestion,
        document=AppealsDocument,
        read=appeals,
        standby=True,
        commands=[
            ReadCommand(
                text=appeals_text,
                action="list",
                about="appeals of job owners, the newest first",
                whose="all that you may see",
                rows="appeals",
                nothing="no appeals found",
            )
        ],
    ),
    Order(path="/v1/appeals", body=AppealOrder, question=NoQuestion, document=AppealDocument, do=appeal),
    Order(
        path="/v1/appeals/{appeal_id}/reply", body=AppealReply, question=OneAppeal, document=AppealDocument, do=reply
    ),
    Page(path="/appeals", document=_asked, html=_page, forms=FORMS, standby=True),
    PageOrder(path="/jobs/{job_id}/appeal", do=_appealed),
    PageOrder(path="/appeals/{appeal_id}/reply", do=_replied),
)
