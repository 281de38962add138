"""Digests of waste, their record, preview and replay: /v1/notices."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from gpuwaste.act.notify.notice_text import notices_text, preview_text, replay_text
from gpuwaste.act.notify.notice_types import (
    MAX_NOTICES,
    NoticePreview,
    NoticeQuestion,
    NoticeReplay,
    NoticeRun,
    NoticeRunQuestion,
    NoticesDocument,
    NoticeWish,
    NoticeWished,
)
from gpuwaste.core.fields import Name, Number
from gpuwaste.core.scope import Scope
from gpuwaste.show.resource import NoQuestion, Order, ReadCommand, Reading, Resource

if TYPE_CHECKING:
    from gpuwaste.act.notify.notice_service import NoticeService


@dataclass(frozen=True)
class NoticePreviewQuestion:
    """Whose digest."""

    user: Annotated[Name | None, Meta(description="whose digest, operators only")] = None


@dataclass(frozen=True)
class NoticeReplayQuestion:
    """Of which time, UTC seconds."""

    start: Number
    end: Number | None = None


def _notices(reading: Reading) -> "NoticeService":
    from gpuwaste.act.notify.notify_parts import NotifyParts

    return reading.get(NotifyParts).service


def listed(reading: Reading, scope: Scope, question: NoticeQuestion) -> NoticesDocument:
    """List who got a digest, who did not, and why; times are UTC seconds, the last 60 days by default."""
    return _notices(reading).listed(scope, question)


def preview(reading: Reading, scope: Scope, question: NoticePreviewQuestion) -> NoticePreview:
    """Return the digest that a user would get if the period ended now: the caller's; for operators any user's."""
    return _notices(reading).preview(scope, question.user)


def replay(reading: Reading, scope: Scope, question: NoticeReplayQuestion) -> NoticeReplay:
    """Return the digests that would have been sent between two UTC seconds; for operators."""
    return _notices(reading).replay(scope, question.start, question.end)


def run(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> NoticeRun:
    """Process the newest period now; a dry run records nothing. For operators."""
    return _notices(reading).run(scope, body)


def wish(reading: Reading, scope: Scope, _: NoQuestion, body: bytes) -> NoticeWished:
    """Set whether the caller wants digests."""
    return _notices(reading).want(scope, body)


RESOURCES = (
    Resource(
        path="/v1/notices/preview",
        question=NoticePreviewQuestion,
        document=NoticePreview,
        read=preview,
        commands=[
            ReadCommand(
                text=preview_text,
                action="preview",
                about="the digest that would be sent if the period ended now",
                whose="yours",
            )
        ],
    ),
    Resource(
        path="/v1/notices",
        question=NoticeQuestion,
        document=NoticesDocument,
        read=listed,
        standby=True,
        commands=[
            ReadCommand(
                text=notices_text,
                action="list",
                about="who got a digest, who did not, and why",
                since="now-60days",
                whose="all that you may see",
                limits=(200, MAX_NOTICES),
                rows="notices",
            )
        ],
    ),
    Resource(
        path="/v1/notices/replay",
        question=NoticeReplayQuestion,
        document=NoticeReplay,
        read=replay,
        commands=[
            ReadCommand(
                text=replay_text,
                action="replay",
                about="who would have got digests in a past period, how often, for how much (operators)",
                since="now-28days",
                long=True,
                rows="users",
            )
        ],
    ),
    Order(path="/v1/notices/run", body=NoticeRunQuestion, question=NoQuestion, document=NoticeRun, do=run),
    Order(path="/v1/notices/wish", body=NoticeWish, question=NoQuestion, document=NoticeWished, do=wish),
)
