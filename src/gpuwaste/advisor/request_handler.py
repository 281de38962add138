"""The request handler: reads a request, finds its user, has it judged, records the verdict, and replies.

A request that cannot be judged passes. A request whose deadline has passed while it waited passes at once, since the
client has stopped waiting. Nothing here blocks: a request of a uid without a known name is deferred for a part of the
deadline. Users choose the texts that are read here, so reading has a budget of CPU; a request beyond it passes unread.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

from gpuwaste.advice.adviser import AdviceRequest
from gpuwaste.advice.policy.policy_case import PolicyOutcome
from gpuwaste.advice.predict.text_facts import name_facts, script_facts
from gpuwaste.advice.submit_frames import decode_body, encode_reply
from gpuwaste.advisor.advisor_counters import Counters
from gpuwaste.advisor.advisor_history import Freshness, KnownJobs
from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.advisor.submit_server import Connection, SubmitHandler
from gpuwaste.advisor.uid_lookup import HostUser, Users
from gpuwaste.advisor.verdict_journal import VerdictJournal
from gpuwaste.advisor.verdict_judge import Judge, JudgedSubmission
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock, CpuBudget, NotReadError
from gpuwaste.core.errors import GpuwasteError, ParseError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Parts
from gpuwaste.core.units import MINUTE_S
from gpuwaste.jobs.verdict import Op, Verdict
from gpuwaste.slurm.submit.job_desc import JobDesc, read_job_desc
from gpuwaste.slurm.submit.job_request import JobRequest

DEADLINE_US: Final = 5000  # if the request has none
_LONGEST_US: Final = 10_000_000
READING_S: Final = 0.002  # CPU for reading one request: well below the plugins' deadline, and others wait meanwhile
_PATIENCE: Final = 0.4  # share of the deadline to wait for a uid's name
_UNREADABLE: Final = log_event.warning(
    "request-unreadable: job accepted without advice, repeats are only counted: {error}",
    "The client is no submit plugin of this version: find out what uses the socket. "
    '`gpuwaste_advisor_requests_total{result="unreadable"}` counts these requests.',
)
_UNJUDGED: Final = log_event.error(
    "request-not-judged: job accepted without advice, repeats are only counted: {error}",
    "Often a model that fails: `gpuwaste model status`.",
)


class VerdictLog(Protocol):
    """Where verdicts are recorded before the reply."""

    def write(self, verdict: Verdict) -> None:
        """Record a verdict. Raises nothing."""
        ...


@dataclass(slots=True)
class Ask:
    """A parsed request."""

    desc: JobDesc
    op: Op
    at_utc_us: int
    unread: bool = False


class RequestHandler(SubmitHandler):
    """Answers on the loop's thread; `reply` answers deferred requests."""

    def __init__(
        self,
        judge: Judge,
        users: Users,
        jobs: KnownJobs,
        *,
        freshness: Freshness,
        journal: VerdictLog,
        counters: Counters,
        clock: Clock,
        reading_s: float = READING_S,
    ) -> None:
        self.reply: Callable[[Connection, bytes], None] = lambda _exchange, _frame: None
        self._judge = judge
        self._users = users
        self._jobs = jobs
        self._freshness = freshness
        self._journal = journal
        self._counters = counters
        self._clock = clock
        self._reading_s = reading_s
        self._put_off: list[Connection] = []

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor."""
        return cls(
            parts.get(Judge),
            parts.get(Users),
            parts.get(KnownJobs),
            freshness=parts.get(Freshness),
            journal=parts.get(VerdictJournal),
            counters=parts.get(Counters),
            clock=parts.get(AdvisorPorts).clock,
        )

    def answer(self, exchanges: Sequence[Connection]) -> None:
        """Reply to complete requests; one whose user has to be looked up first is deferred.

        Short ones are first, and are answered before reading the long ones has taken more than the budget of one.
        """
        ready: list[tuple[Connection, JudgedSubmission]] = []
        until = time.thread_time() + self._reading_s
        for exchange in sorted(exchanges, key=_length):
            found = self._prepared(exchange)
            if isinstance(found, JudgedSubmission):
                ready.append((exchange, found))
            elif found is not None:
                self.reply(exchange, found)
            if time.thread_time() > until:
                self._judged(ready)
                ready = []
                until = time.thread_time() + self._reading_s
        self._judged(ready)

    def _prepared(self, exchange: Connection) -> JudgedSubmission | bytes | None:
        """Return the submission to judge, or the reply, or None where the user has to be looked up first."""
        budget = CpuBudget(self._reading_s)
        try:
            document = decode_body(exchange.body)
            exchange.body = b""
            if document.get("op") == "ping":
                model = self._judge.model_hash
                return encode_reply("", "pass", as_of=self._freshness.as_of(), model=model)
            ask = self._read(document, exchange)
        except ParseError as error:
            if not self._counters.asked["unreadable"]:
                _UNREADABLE.log(error=error)
            return self.turned_away(exchange, "unreadable")
        now_us = self._clock.mono_us()
        if now_us > exchange.until_us:
            return self.turned_away(exchange, "late")
        try:
            name_facts(ask.desc.asked.name)
            script_facts(ask.desc.asked.script, budget)
        except NotReadError:
            ask.unread = True
        user = self._users.get(ask.desc.uid)
        if user is None:
            exchange.work = ask
            exchange.until_us = exchange.arrived_us + int(_PATIENCE * (exchange.until_us - exchange.arrived_us))
            self._put_off.append(exchange)
            return None
        return self._submission(exchange, ask, user)

    def turned_away(self, exchange: Connection, why: str) -> bytes:
        """Return "pass"; `why` is the counter."""
        self._counters.asked[why] += 1
        self._counters.answered(self._clock.mono_us() - exchange.arrived_us)
        return encode_reply("", "pass", as_of=self._freshness.as_of())

    def tick(self, now_us: int) -> bool:
        """Answer deferred requests whose user is known by now, or whose time is over; true while some are deferred."""
        if self._put_off:
            waiting, self._put_off = self._put_off, []
            for exchange in waiting:
                self._again(exchange, now_us)
        return bool(self._put_off)

    def _again(self, exchange: Connection, now_us: int) -> None:
        ask = exchange.work
        assert isinstance(ask, Ask)  # noqa: S101 narrows the type: set when it was deferred
        user = self._users.get(ask.desc.uid)
        if user is None and now_us <= exchange.until_us:
            self._put_off.append(exchange)
            return
        if user is None:
            self._counters.troubles["user"] += 1
            user = self._users.last(ask.desc.uid) or HostUser("", frozenset(), 0)
        found = self._submission(exchange, ask, user)
        if isinstance(found, JudgedSubmission):
            self._judged([(exchange, found)])
        else:
            self.reply(exchange, found)

    def _read(self, document: dict[str, Any], exchange: Connection) -> Ask:
        """Read a request and take the plugin's counters. Raises ParseError."""
        self._counters.reported(document.get("via"), document.get("counters"))
        deadline = document.get("deadline_us")
        deadline_us = deadline if type(deadline) is int and 0 < deadline <= _LONGEST_US else DEADLINE_US
        exchange.until_us = exchange.arrived_us + deadline_us
        uid = document.get("uid")
        desc = read_job_desc(document.get("job"), uid if type(uid) is int and uid >= 0 else 0)
        return Ask(desc, "modify" if document.get("op") == "modify" else "submit", self._clock.utc_us())

    def _submission(self, exchange: Connection, ask: Ask, user: HostUser) -> JudgedSubmission | bytes:
        request = self._request(ask, user)
        if request is None:
            return self.turned_away(exchange, "unknown job")
        desc, stale = ask.desc, self._freshness.stale
        asked = AdviceRequest(request, ask.op, user.groups, stale, desc.test_only, ask.unread, script=desc.script_hash)
        return JudgedSubmission(desc, asked, ask.at_utc_us, exchange.arrived_us, exchange.until_us)

    def _judged(self, ready: Sequence[tuple[Connection, JudgedSubmission]]) -> None:
        """Judge and reply; if judging them together fails each is judged separately, and passes if that fails too."""
        if not ready:
            return
        try:
            found = self._judge.judge([submission for _, submission in ready])
        except Exception as error:  # noqa: BLE001 whatever a request contains, the others are answered
            if len(ready) > 1:
                for one in ready:
                    self._judged((one,))
            else:
                self._cannot(ready[0][0], error)
            return
        for (exchange, submission), (verdict, decision) in zip(ready, found, strict=True):
            self.reply(exchange, self._said(submission, verdict, decision))

    def _cannot(self, exchange: Connection, error: Exception) -> None:
        """Reply "pass" to a request that cannot be judged."""
        self._counters.troubles["judge"] += 1
        if not isinstance(error, GpuwasteError):
            BUG.log(error, what="advice on a job")
        elif self._counters.troubles["judge"] == 1:
            _UNJUDGED.log(error=error)
        self.reply(exchange, self.turned_away(exchange, "unjudged"))

    def _said(self, submission: JudgedSubmission, verdict: Verdict, decision: PolicyOutcome) -> bytes:
        """Record the verdict and return the reply."""
        if not submission.desc.test_only:
            self._journal.write(verdict)
        self._count(verdict, submission)
        time_min_s = None if submission.desc.time_min_s else decision.time_min_s
        return encode_reply(
            verdict.id,
            decision.reply_action,
            decision.printed,
            as_of=self._freshness.as_of(),
            time_min=None if time_min_s is None else time_min_s // MINUTE_S,
        )

    def _request(self, ask: Ask, user: HostUser) -> JobRequest | None:
        """Return the resulting request; None for a modification of an unknown job."""
        now_s = ask.at_utc_us // 1_000_000
        if ask.op == "submit":
            return ask.desc.request(user.name, now_s)
        known = None if ask.desc.job_id is None else self._jobs.get(ask.desc.job_id)
        return None if known is None else ask.desc.changed(known, now_s)

    def _count(self, verdict: Verdict, submission: JudgedSubmission) -> None:
        became = "not read" if submission.asked.unread else "stale" if submission.asked.stale else "judged"
        self._counters.asked[became] += 1
        self._counters.verdicts[verdict.action, verdict.would_be, verdict.mode, verdict.held] += 1
        self._counters.answered(verdict.latency_us)


def _length(exchange: Connection) -> int:
    return len(exchange.body)
