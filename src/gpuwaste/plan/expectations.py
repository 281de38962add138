"""POST /v1/plan: when the caller's requests would start, from the queue that only the hub sees completely.

A bundle of waits, if one is in use, predicts requests; otherwise, and for jobs that already wait, the queue is
simulated forward. The simulator is an extra, and its loops are compiled at the first request. The queue is read with
three RPCs, at most every KEPT_S for all callers, limits and reservations less often (hub_queue_facts.py); the answer
names only the caller's jobs.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from gpuwaste.advice.policy.expected_waits import WaitRow
from gpuwaste.advice.predict.request_json import parse_requests
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import MAX_WORDS, ConfigError, GpuwasteError, NoDataError, ParseError, SlurmError, UsageError
from gpuwaste.core.fields import Interval
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import BAD, FORBIDDEN, LATER, NOT_INSTALLED, Refusal, not_found
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.scope import Scope
from gpuwaste.core.units import DAY_S
from gpuwaste.core.worker import Worker
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.reports.document_queries import PRINTED_ID
from gpuwaste.plan.hub_queue_facts import PastRunTimes, SiteModel
from gpuwaste.plan.plan_document import ExpectAnswer, ExpectedRun, WaitTableAnswer
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.site.site_defaults import SiteDefaults
from gpuwaste.slurm.submit.job_request import JobRequest, request_like
from gpuwaste.store.hub.hub_store import HubStore

if TYPE_CHECKING:
    from gpuwaste.plan.learnt_waits import LearntWaits
    from gpuwaste.plan.live_queue import LiveQueue
    from gpuwaste.plan.start_time.scheduler_queue import QueuedRequest
    from gpuwaste.plan.start_time.start_expectation import StartExpectation
    from gpuwaste.plan.wait_lessons import WaitLessons

KEPT_S: Final = 15
WAITS_KEPT_S: Final = 60
DRAWS: Final = 40
LEARN_S: Final = 120.0
ASKED_S: Final = DAY_S  # the hub goes on learning this long after a request: a site without requests pays nothing
_STALE: Final = log_event.warning(
    "expected-starts-stale: cannot learn from the queue: {error}",
    "Expected starts of `gpuwaste plan` are not corrected by new waits until slurmctld answers. Check `scontrol ping`.",
)


class Expectations(Part):
    """Answers for requests and for waiting jobs; for any thread, one at a time simulates."""

    def __init__(self, store: HubStore, slurm: SlurmClient, clock: Clock, models_dir: Path, draws: int = DRAWS) -> None:
        self._store, self._slurm, self._clock, self._draws = store, slurm, clock, draws
        self._models_dir = models_dir
        self._lock = threading.Lock()
        self._jobs: dict[int, RunningJob] = {}
        self._live: LiveQueue | None = None
        self._site = SiteDefaults()
        self._past = PastRunTimes(store)
        self._lessons: WaitLessons | None = None
        self._learnt: LearntWaits | None = None
        self._asked_at: int | None = None
        self._waits: WaitTableAnswer | None = None
        self._trouble = RepeatSuppressor()
        self._model = SiteModel(slurm)
        self.worker = Worker("expectations", self.step, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        ports, models_dir = parts.get(HostPorts), Path(parts.get(Config).common.models_dir)
        return cls(parts.get(HubStore), ports.slurm, ports.clock, models_dir)

    def step(self) -> float | None:
        """Read the queue and learn from started jobs; return seconds to wait, None until the next request.

        Nothing is learnt after a day without requests, and without the simulator.
        """
        if not self._learns():
            return None
        try:
            with self._lock:
                live = self._read()
                if self._lessons is None:
                    from gpuwaste.plan.wait_lessons import WaitLessons  # noqa: PLC0415 needs the extra `sim`

                    self._lessons = WaitLessons()
                self._lessons.step(live, self._jobs, self._learnt_waits(live))
        except Refusal as refusal:
            if refusal.status == NOT_INSTALLED:
                return None
            self._failed(str(refusal))
        except GpuwasteError as error:
            self._failed(str(error))
        else:
            self._trouble.over()
        return LEARN_S

    def _coordinates(self, scope: Scope, job: RunningJob) -> bool:
        return bool(scope.accounts) and (self._slurm.cluster_name(), job.account) in scope.accounts

    def _learns(self) -> bool:
        return self._asked_at is not None and self._clock.utc_s() - self._asked_at <= ASKED_S

    def _asked(self) -> None:
        learns = self._learns()
        self._asked_at = self._clock.utc_s()
        if not learns:
            self.worker.wake()

    def _failed(self, words: str) -> None:
        if self._trouble.news(words):
            _STALE.log(error=words)

    def for_requests(self, scope: Scope, body: bytes) -> ExpectAnswer:
        """Return the expectations for the caller's own requests, for an operator anybody's. Raises Refusal."""
        requests = parse_requests(body, scope.user, self._clock.utc_s())
        if not all(r.user and (scope.everything or r.user == scope.user) for r in requests):
            raise not_found()
        self._asked()
        with self._lock:
            live = self._read()
            return self._answer(live, self._expected(live, [self._site.completed(one) for one in requests]))

    def for_job(self, scope: Scope, printed_id: str) -> ExpectAnswer:
        """Return the expectation for a waiting job, to its owner or an operator. Raises Refusal."""
        if not PRINTED_ID.fullmatch(printed_id):
            raise not_found()
        self._asked()
        with self._lock:
            live = self._read()
            number = int(printed_id.partition("_")[0].partition("+")[0])
            job = self._jobs.get(number)
            if job is None or not (scope.everything or job.user == scope.user or self._coordinates(scope, job)):
                raise not_found()
            found = live.without(job.job_id)
            if found is None:
                return self._answer(live, [None], job)
            rest, place = found
            request = self._site.completed(request_like(job, whole_node=job.exclusive))
            begin_s = max(0, (job.eligible or 0) - live.queue.now)
            row = rest.candidate(request, place=place, begin_s=begin_s, job=job)
            return self._answer(live, self._played(rest, [row]), job, place)

    def waits(self, scope: Scope) -> WaitTableAnswer:
        """Return how long jobs of each shape wait, at most WAITS_KEPT_S old; for advisors. Raises Refusal."""
        if not (scope.everything or scope.agent):
            raise Refusal(FORBIDDEN, "only operators and advisors may read the table of waits")
        self._asked()
        with self._lock:
            if self._waits is not None and 0 <= self._clock.utc_s() - self._waits.at < WAITS_KEPT_S:
                return self._waits
            live = self._read()
            from gpuwaste.plan.live_queue import wait_shapes  # noqa: PLC0415 needs the extra `sim`

            shapes = wait_shapes(live)
            found = self._played(live, [row for _, row in shapes]) if shapes else []
            rows = [_wait_row(r, one, live.queue.now) for (r, _), one in zip(shapes, found, strict=True) if one]
            self._waits = WaitTableAnswer(at=live.queue.now, rows=rows)
            return self._waits

    def _expected(self, live: "LiveQueue", requests: Sequence[JobRequest]) -> "list[StartExpectation | None]":
        rows: dict[int, QueuedRequest] = {}
        for number, request in enumerate(requests):
            try:
                rows[number] = live.candidate(request)
            except NoDataError:
                continue
        found = self._from_trees(live, requests, rows)
        left = [number for number in rows if number not in found]
        if left:
            found |= zip(left, self._played(live, [rows[number] for number in left]), strict=True)
        return [found.get(number) for number in range(len(requests))]

    def _from_trees(
        self, live: "LiveQueue", requests: Sequence[JobRequest], rows: "Mapping[int, QueuedRequest]"
    ) -> "dict[int, StartExpectation | None]":
        """Return what a bundle of waits expects, by row number, for those of `rows` whose partition it has learnt."""
        learnt = self._learnt_waits(live)
        if learnt is None or not learnt.in_use or not rows:
            return {}
        from gpuwaste.plan.start_time.start_expectation import expect_learnt  # noqa: PLC0415 needs the extra `sim`

        asked = [
            replace(requests[n], submit=live.queue.now, partition=requests[n].partition or live.default) for n in rows
        ]
        waits = {n: wait for n, wait in zip(rows, learnt.expected(asked), strict=True) if wait is not None}
        try:
            found = expect_learnt(live.queue, [rows[n] for n in waits], list(waits.values()), self._draws)
        except UsageError as error:
            raise Refusal(BAD, f"the request: {error}") from error
        return dict(zip(waits, found, strict=True))

    def _learnt_waits(self, live: "LiveQueue") -> "LearntWaits | None":
        """Return the bundle of waits with the queue of `live`; None without the extra `predict`."""
        if self._learnt is None:
            try:
                from gpuwaste.plan.learnt_waits import LearntWaits  # noqa: PLC0415 needs the extras `sim` and `predict`
            except ModuleNotFoundError:
                return None
            self._learnt = LearntWaits(self._store, self._models_dir)
        self._learnt.step(self._jobs, live.queue.now)
        return self._learnt

    def _played(self, live: "LiveQueue", rows: "Sequence[QueuedRequest]") -> "list[StartExpectation | None]":
        from gpuwaste.plan.start_time.start_expectation import expect  # noqa: PLC0415 needs the extra `sim`

        try:
            shifts = None if self._lessons is None else self._lessons.shifts
            return expect(live.queue, rows, self._draws, correction=shifts)
        except UsageError as error:
            raise Refusal(BAD, f"the request: {error}") from error

    def _answer(
        self,
        live: "LiveQueue",
        expected: "Sequence[StartExpectation | None]",
        job: RunningJob | None = None,
        place: int | None = None,
    ) -> ExpectAnswer:
        return ExpectAnswer(
            at=live.queue.now,
            expected=[None if one is None else _shown(one) for one in expected],
            running=len(live.queue.running.limit_s),
            waiting=len(live.queue.waiting.limit_s),
            place=place,
            reason="" if job is None else job.reason,
            state="" if job is None else job.state,
        )

    def _read(self) -> "LiveQueue":
        """Return the queue, read again if it is older than KEPT_S. Raises Refusal."""
        now = self._clock.utc_s()
        if self._live is not None and 0 <= now - self._live.queue.now < KEPT_S:
            return self._live
        need_simulator()  # reports what is missing before Slurm is queried
        from gpuwaste.plan.live_queue import live_queue  # noqa: PLC0415 needs the extra `sim`

        try:
            jobs, nodes = self._slurm.jobs(), self._slurm.nodes()
            self._site = SiteDefaults.of(self._slurm.partitions())
            self._live = live_queue(jobs, nodes, self._site.partition, self._past.at(now), now, self._model.at(now))
        except (SlurmError, ParseError, NoDataError, ConfigError) as error:
            raise Refusal(LATER, f"the queue cannot be read: {error}", retry_after=KEPT_S) from error
        self._jobs = {job.job_id: job for job in jobs}
        self._jobs |= {job.array_job_id: job for job in jobs if job.array_job_id and job.array_job_id not in self._jobs}
        return self._live


def _shown(one: "StartExpectation") -> ExpectedRun:
    first, middle, last = one.ends
    start = Interval(p10=one.p10, p50=one.p50, p90=one.p90)
    return ExpectedRun(start=start, end=Interval(p10=first, p50=middle, p90=last), source=one.source)


def _wait_row(request: JobRequest, one: "StartExpectation", now: int) -> WaitRow:
    return WaitRow(
        partition=request.partition,
        gpu_type=request.gpu_type,
        gpus=request.gpus,
        limit_s=request.time_limit_s or 0,
        p10=max(0, one.p10 - now),
        p50=max(0, one.p50 - now),
        p90=max(0, one.p90 - now),
    )


def need_simulator() -> None:
    """Load the simulator. Raises Refusal where it is not installed, or the service may not compile."""
    try:
        from gpuwaste.plan.start_time import start_expectation  # noqa: F401, PLC0415 needs the extra `sim`
    except ModuleNotFoundError as error:
        raise Refusal(
            NOT_INSTALLED,
            f"the simulator is not installed: no module {error.name}: install gpuwaste with its extra [sim] on the"
            " hub's host",
        ) from error
    except OSError as error:  # numba checks whether memory may be executed
        reason = str(error).splitlines()[0][:MAX_WORDS]
        raise Refusal(
            NOT_INSTALLED,
            f"the simulator cannot compile its loops: {reason}: add etc/systemd/50-simulator.conf to the hub's unit as"
            " a drop-in (gpuwaste-sim installs it) and restart the hub",
        ) from error
