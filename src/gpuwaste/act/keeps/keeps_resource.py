"""List the jobs for which the rules wait, the newest first: your own, those of your accounts, or all for operators."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, quote

from gpuwaste.act.keeps.keep_text import keeps_text
from gpuwaste.act.keeps.keep_types import (
    MAX_BODY,
    SHORTEST_S,
    KeepAnswer,
    KeepOrder,
    KeepsDocument,
    KeepsQuestion,
)
from gpuwaste.core.refusal import BAD, Refusal
from gpuwaste.core.scope import Scope
from gpuwaste.core.units import HOUR_S
from gpuwaste.show.resource import FORMS, Order, Page, PageOrder, PageRequest, ReadCommand, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.act.keeps.keep_service import KeepService

_FIELDS: Final = 4
_HOURS: Final = frozenset({"1", "2", "4", "8", "12", "24"})  # of the form


@dataclass(frozen=True)
class KeptJob:
    """Which job."""

    job_id: str


def _service(reading: Reading) -> "KeepService":
    from gpuwaste.act.keeps.keep_service import KeepService

    return reading.get(KeepService)


def keeps(reading: Reading, scope: Scope, question: KeepsQuestion) -> KeepsDocument:
    """List keeps, the newest first: users see those of their jobs, coordinators of their accounts, operators all."""
    return _service(reading).listed(scope, question)


def keep(reading: Reading, scope: Scope, question: KeptJob, body: bytes) -> KeepAnswer:
    """Make the rules wait for a running job, within the budget; for its owner, a coordinator or an operator."""
    from gpuwaste.act.keeps.keep_service import order_of

    return _service(reading).keep(scope, question.job_id, order_of(body))


def _listed(asked: PageRequest) -> KeepsDocument:
    return keeps(asked.reading, asked.scope, KeepsQuestion())


def _page(asked: PageRequest, document: KeepsDocument) -> str:
    from gpuwaste.show.environment import page

    return page("keeps", asked.frame, document=document)


def _kept(asked: PageRequest, body: bytes) -> str:
    """Keep a job by the form of its page, and show the job again."""
    _service(asked.reading).keep(asked.scope, asked.name, _order(body))
    return f"/jobs/{quote(asked.name, safe='+')}#keep"


def _order(body: bytes) -> KeepOrder:
    try:
        fields = parse_qs(body[: MAX_BODY + 1].decode("utf-8"), max_num_fields=_FIELDS) if len(body) <= MAX_BODY else {}
    except ValueError as error:
        raise Refusal(BAD, "the form cannot be read: reload the page and send it again") from error
    hours = fields.get("hours", [""])[0]
    if hours not in _HOURS:
        raise Refusal(BAD, "the form cannot be read: choose for how long, and give a reason of 500 characters at most")
    return KeepOrder(seconds=max(int(hours) * HOUR_S, SHORTEST_S), reason=fields.get("reason", [""])[0])


RESOURCES = (
    Resource(
        path="/v1/keeps",
        question=KeepsQuestion,
        document=KeepsDocument,
        read=keeps,
        commands=[
            ReadCommand(
                text=keeps_text,
                action="list",
                about="jobs for which rules wait, the newest first",
                whose="all that you may see",
                rows="keeps",
                nothing="no keeps found",
            )
        ],
    ),
    Order(path="/v1/jobs/{job_id}/keep", body=KeepOrder, question=KeptJob, document=KeepAnswer, do=keep),
    Page(path="/keeps", document=_listed, html=_page, forms=FORMS),
    PageOrder(path="/jobs/{job_id}/keep", do=_kept),
)
