"""NoticeService: the answers of the notice routes: an operator gets all, a user their own. Blocks on the store."""

import json
from collections import Counter
from typing import Final

from msgspec.structs import asdict

from gpuwaste.act.notify.notice_decisions import HELD_BACK, NoticeDecision
from gpuwaste.act.notify.notice_planner import Planner
from gpuwaste.act.notify.notice_runner import NoticeRunner, words
from gpuwaste.act.notify.notice_types import (
    MAX_NOTICES,
    NoticePreview,
    NoticeQuestion,
    NoticeReplay,
    NoticeRow,
    NoticeRun,
    NoticesDocument,
    NoticeWished,
    ReplayedPeriod,
    ReplayedUser,
    ToldRow,
)
from gpuwaste.core.clock import Clock
from gpuwaste.core.refusal import BAD, FORBIDDEN, LATER, Refusal, not_found
from gpuwaste.core.scope import Scope
from gpuwaste.core.typed import convert
from gpuwaste.core.units import DAY_S
from gpuwaste.show.layout import Look

MAX_REPLAY_DAYS: Final = 400
_LIST_DAYS: Final = 60


class NoticeService:
    """Answers within a caller's scope; `notifier` is None where [notify] names no mail server."""

    def __init__(self, planner: Planner, notifier: NoticeRunner | None, clock: Clock) -> None:
        self._planner = planner
        self._notifier = notifier
        self._clock = clock

    def listed(self, scope: Scope, question: NoticeQuestion) -> NoticesDocument:
        """Return the notices, sent or not, the newest period first. Raises Refusal: 404 for another user's."""
        now = self._clock.utc_s()
        end = now + 1 if question.end is None else question.end
        start = end - _LIST_DAYS * DAY_S if question.start is None else question.start
        if start > end:
            raise Refusal(BAD, f"start {start} is after end {end}")
        user = question.user if scope.everything else _own(scope, question.user)
        dry = None if scope.everything else False
        rows = self._planner.notices.listed(start, end, user=user, dry=dry, limit=min(question.limit, MAX_NOTICES))
        # Who is held back by a campaign sees what they would see without it: nothing.
        shown = rows if scope.everything else [row for row in rows if row["why"] != HELD_BACK]
        notices = convert(shown, list[NoticeRow])
        dry_run = self._planner.settings.dry_run
        return NoticesDocument(generated=now, start=start, end=end, notices=notices, dry_run=dry_run)

    def preview(self, scope: Scope, user: str | None) -> NoticePreview:
        """Return the digest that a user would get if a period ended now. Raises Refusal."""
        name = _own(scope, user) if user is None or not scope.everything else user
        now = self._clock.utc_s()
        decision = self._planner.preview(name, now)
        if decision is None:
            return NoticePreview(
                generated=now, start=now, end=now, user=name, why="no_jobs", subject="", text="", to=""
            )
        subject = text = ""
        if decision.digest is not None:
            settings = self._planner.settings
            subject, text = words(decision.digest, Look(zone=settings.zone), settings.text)
        return NoticePreview(
            generated=now, start=decision.start, end=decision.end, **asdict(_row(decision)), subject=subject, text=text,
            to=decision.address,
        )  # fmt: skip

    def replay(self, scope: Scope, start: int, end: int | None) -> NoticeReplay:
        """Return who would have got digests in a window, how many, and for how much waste. Raises Refusal."""
        _operator(scope)
        now = self._clock.utc_s()
        end = now if end is None else min(end, now)
        if start >= end:
            raise Refusal(BAD, f"start {start} is not before end {end}")
        if end - start > MAX_REPLAY_DAYS * DAY_S:
            raise Refusal(BAD, f"at most {MAX_REPLAY_DAYS} days per replay")
        found = self._planner.replay(start, end, now)
        periods = [
            ReplayedPeriod(start=period[0], end=period[1], not_told=_reasons(decisions), told=_told(decisions))
            for period, decisions in found
        ]
        return NoticeReplay(generated=now, start=start, end=end, periods=periods, users=_users(found))

    def run(self, scope: Scope, body: bytes) -> NoticeRun:
        """Decide on the newest period now, and store that unless it is a dry run. Raises Refusal."""
        _operator(scope)
        if self._notifier is None:
            raise Refusal(BAD, "[notify] smtp_host is empty: the hub sends no mail")
        now, dry = self._clock.utc_s(), _flag(body, "dry_run")
        period = self._planner.settings.digest.period(now)
        missing = self._notifier.missing(period)
        if missing and not dry:
            raise Refusal(LATER, f"the period cannot be processed yet: {missing}")
        news = True
        if dry:
            decisions = self._planner.digests(period, now, dry=self._planner.settings.dry_run)
        else:
            period, decisions, news = self._notifier.decide()
        return NoticeRun(
            generated=now, start=period[0], end=period[1], dry_run=dry or self._planner.settings.dry_run, news=news,
            missing=missing, not_told=_reasons(decisions), told=_told(decisions),
        )  # fmt: skip

    def want(self, scope: Scope, body: bytes) -> NoticeWished:
        """Store whether the caller wants digests. Raises Refusal."""
        if not scope.user:
            raise Refusal(FORBIDDEN, "only the user can turn mail on or off")
        mail = _flag(body, "mail")
        self._planner.notices.want(scope.user, mail=mail)
        now = self._clock.utc_s()
        return NoticeWished(generated=now, start=now, end=now, user=scope.user, mail=mail)


def _own(scope: Scope, user: str | None) -> str:
    if not scope.user or (user is not None and user != scope.user):
        raise not_found()
    return scope.user


def _operator(scope: Scope) -> None:
    if not scope.everything:
        raise Refusal(FORBIDDEN, "only operators may see other users' digests")


def _flag(body: bytes, name: str) -> bool:
    """Return the one flag of a JSON body. Raises Refusal."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(BAD, f"the body is not JSON: {error}") from error
    if not isinstance(data, dict) or set(data) != {name} or not isinstance(data[name], bool):
        raise Refusal(BAD, f'the body is not {{"{name}": true}} or {{"{name}": false}}')
    return bool(data[name])


def _row(decision: NoticeDecision) -> ToldRow:
    return ToldRow(**{name: getattr(decision, name) for name in ToldRow.__struct_fields__})


def _told(decisions: list[NoticeDecision]) -> list[ToldRow]:
    return [_row(d) for d in decisions if d.told]


def _reasons(decisions: list[NoticeDecision]) -> dict[str, int]:
    return dict(sorted(Counter(d.why for d in decisions if not d.told).items()))


def _users(found: list[tuple[tuple[int, int], list[NoticeDecision]]]) -> list[ReplayedUser]:
    """Return the users who would have got a digest, the largest waste first."""
    of_user: dict[str, list[NoticeDecision]] = {}
    for _, decisions in found:
        for decision in decisions:
            if decision.told:
                of_user.setdefault(decision.user, []).append(decision)
    rows = [
        ReplayedUser(
            user=user,
            times=len(theirs),
            jobs=sum(d.jobs for d in theirs),
            gpu_s=sum(d.gpu_s for d in theirs),
            wasted_s=sum(d.wasted_s for d in theirs),
        )
        for user, theirs in of_user.items()
    ]
    return sorted(rows, key=lambda r: (-r.wasted_s, r.user))
