"""GET /v1/jobs/ID/curves: the samples of a job's newest runs, fetched on request and cached for a while.

The nodes of a run are queried at the same time, a few runs at once for all users. None of it goes to the ledger.
"""

import gzip
import threading
from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import replace as replaced
from typing import Final, Self

import msgspec
from msgspec.structs import replace

from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.refusal import LATER, TOO_MANY, Refusal, not_found
from gpuwaste.core.response_cache import ResponseCache
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.ledger.curves.agent_curves import AgentSamples, without
from gpuwaste.ledger.curves.curve_types import (
    MOST_GPUS,
    MOST_NODES,
    MOST_RUNS,
    HourMean,
    JobCurves,
    NodeCurves,
    RunCurves,
)
from gpuwaste.ledger.curves.prometheus_curves import PrometheusSamples
from gpuwaste.ledger.reports.document_queries import DocumentQueries
from gpuwaste.ledger.reports.report_question import JobQuestion
from gpuwaste.net.sample_query import MOST_POINTS, RunWindow, SampleQuestion
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.formats.hostlist import expand
from gpuwaste.store.hub.hub_store import HubStore

_PER_MINUTE: Final = 120
_MINUTE_US: Final = 60_000_000
_MOST_AT_ONCE: Final = 6
_MOST_POINTS: Final = 64_000  # per quantity, over all GPUs of an answer
_FEWEST_POINTS: Final = 120
_MOST_HOURS: Final = 20_000
_DEADLINE_S: Final = 25.0
_SLACK_US: Final = 60_000_000  # a node's clock may differ; the run's key keeps others' samples out
_RUNNING_S: Final = 10.0
_ENDED_S: Final = 3600.0
_SETTLE_S: Final = 120  # so long after a run's end its last samples may still arrive
_FINAL: Final = frozenset({"answered", "no_samples", "past_retention", "gone", "not_asked"})
Hours = dict[str, list[HourMean]]


class QuestionBudget:
    """How many requests to nodes a user may cause in a minute. Thread-safe."""

    def __init__(self, clock: Clock, most: int = _PER_MINUTE) -> None:
        self._clock = clock
        self._most = most
        self._lock = threading.Lock()
        self._asked: dict[str, deque[int]] = {}

    def take(self, user: str, questions: int) -> None:
        """Count a user's requests to nodes, at least one. Raises Refusal 429 where the minute's budget is used up."""
        now_us = self._clock.mono_us()
        with self._lock:
            for name in [name for name, times in self._asked.items() if times[-1] < now_us - _MINUTE_US]:
                del self._asked[name]
            times = self._asked.setdefault(user, deque())
            while times and times[0] < now_us - _MINUTE_US:
                times.popleft()
            if times and len(times) + questions > self._most:
                words = f"at most {self._most} questions to nodes per minute for one user: retry later"
                raise Refusal(TOO_MANY, words, retry_after=1 + (times[0] + _MINUTE_US - now_us) // 1_000_000)
            times.extend([now_us] * questions)


class Curves(Part):
    """Returns a job's samples; blocks, for the threads of requests."""

    def __init__(
        self,
        reads: DocumentQueries,
        store: HubStore,
        clock: Clock,
        *,
        agents: AgentSamples | None,
        prometheus: PrometheusSamples | None,
    ) -> None:
        """`agents` and `prometheus` are None where they are not to be queried."""
        self._reads = reads
        self._store = store
        self._clock = clock
        self._agents = agents
        self._prometheus = prometheus
        self._kept = ResponseCache(clock)
        self._budget = QuestionBudget(clock)
        self._lock = threading.Lock()
        self._under_way: dict[Hashable, Future[bytes]] = {}
        self._pool = ThreadPoolExecutor(_MOST_AT_ONCE * MOST_NODES, "curves")  # no request waits for another's node

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        config, ports = parts.get(Config), parts.get(HostPorts)
        url, prometheus, ca = config.hub.agent_url, config.hub.prometheus_url, config.common.hub_ca
        site = parts.get(ClusterFacts)
        return cls(
            parts.get(DocumentQueries),
            parts.get(HubStore),
            ports.clock,
            agents=AgentSamples(url, ca, ports.agents, site, ports.clock) if url and ports.agents is not None else None,
            prometheus=PrometheusSamples(prometheus, ca) if prometheus else None,
        )

    def packed(self, scope: Scope, printed_id: str, question: JobQuestion, node: str | None) -> bytes:
        """Return the document as gzip'd JSON; `node` restricts it to one node of the runs. Raises Refusal."""
        found = self._reads.runs(scope, printed_id, question)
        started = sorted((run for run in found if run.start is not None), key=lambda run: run.start or 0, reverse=True)
        runs = [(run, _nodes(run, node)) for run in started[:MOST_RUNS]]
        if node is not None:
            runs = [(run, names) for run, names in runs if names]
            if not runs:
                raise not_found()
        key = (printed_id, node, len(started), tuple((run.run_key, run.end) for run, _ in runs))
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                return kept
            mine = key not in self._under_way
            if mine:
                if len(self._under_way) >= _MOST_AT_ONCE:
                    raise Refusal(LATER, "the hub is fetching the samples of other jobs: retry", retry_after=2)
                if (self._agents or self._prometheus) and not scope.everything:
                    self._budget.take(scope.user, max(1, min(MOST_NODES, sum(len(names) for _, names in runs))))
                self._under_way[key] = Future()
            future = self._under_way[key]
        if not mine:
            return _result_of(future)
        try:
            document = self._document(printed_id, runs, len(started) - len(runs) if node is None else 0)
            packed = gzip.compress(msgspec.json.encode(document), 5, mtime=0)
            self._kept.keep(key, packed, _ENDED_S if self._is_final(document) else _RUNNING_S)
            future.set_result(packed)
        except BaseException as error:
            future.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[key]
        return packed

    def close(self) -> None:
        """Send no more requests, without waiting for those in progress."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _document(self, printed_id: str, runs: Sequence[tuple[JobRecord, Sequence[str]]], left_out: int) -> JobCurves:
        room, asked = MOST_NODES, []
        # An agent answers one request at a time: the runs of a node are queried in turn, so that none is refused.
        turns: dict[str, threading.Lock] = defaultdict(threading.Lock)
        gpus = sum(run.gpus or 1 for run, _ in runs)
        points = max(_FEWEST_POINTS, min(MOST_POINTS, _MOST_POINTS // max(1, gpus)))
        for run, names in runs:
            first = names[:room]
            room -= len(first)
            hours = self._hours(run, first)
            futures = [
                self._pool.submit(self._node, run, name, turns[name], points, hours.get(name, [])) for name in first
            ]
            asked.append((run, names, first, futures))
        until_us = self._clock.mono_us() + int(_DEADLINE_S * 1e6)
        rows = []
        for run, names, first, futures in asked:
            nodes = [self._waited(future, name, until_us) for name, future in zip(first, futures, strict=True)]
            rows.append(
                RunCurves(
                    cluster=run.cluster,
                    job_id=run.job_id,
                    printed_id=run.printed_id,
                    start=run.start or 0,
                    end=run.end,
                    nodes=nodes,
                    nodes_left_out=len(names) - len(first),
                )
            )
        return JobCurves(generated=self._clock.utc_s(), printed_id=printed_id, runs=rows, runs_left_out=left_out)

    def _waited(self, future: "Future[NodeCurves]", name: str, until_us: int) -> NodeCurves:
        try:
            return future.result(max(0.0, (until_us - self._clock.mono_us()) / 1e6))
        except TooLate:
            future.cancel()
            return without(name, "unreachable")

    def _node(self, run: JobRecord, node: str, turn: threading.Lock, points: int, hours: list[HourMean]) -> NodeCurves:
        """Return the samples of a run on a node, if any, and its hours."""
        start_us = (run.start or 0) * 1_000_000
        end_us = self._clock.utc_us() if run.end is None else run.end * 1_000_000
        exactly = RunWindow(run.job_id, run.start or 0, start_us, max(end_us, start_us + 1), points)
        own = {hour.gpu_uuid for hour in hours}
        if self._agents is None:
            found = without(node, "not_asked")
        else:
            window = replaced(exactly, since_us=max(0, start_us - _SLACK_US), until_us=exactly.until_us + _SLACK_US)
            with turn:
                answer = self._agents.ask(SampleQuestion(node, window), own, run.gpus or MOST_GPUS)
            found = _described(answer, run)
        if not found.gpus and self._prometheus is not None:
            found = self._prometheus.ask(SampleQuestion(node, exactly), own) or found
        return replace(found, hours=hours)

    def _hours(self, run: JobRecord, nodes: Sequence[str]) -> Hours:
        """Return the ledger's hours of the run, by node."""
        asked = {"cluster": run.cluster, "job_id": run.job_id, "start": run.run_key.start, "nodes": list(nodes)}
        with self._store.reader() as db:
            rows = db.rows("curve_hours", {**asked, "most": _MOST_HOURS})
        found: Hours = defaultdict(list)
        for row in rows:
            found[row.pop("node")].append(HourMean(**row))
        return found

    def _is_final(self, document: JobCurves) -> bool:
        settled = document.generated - _SETTLE_S
        return all(
            run.end is not None and run.end < settled and all(node.state in _FINAL for node in run.nodes)
            for run in document.runs
        )


def _result_of(future: "Future[bytes]") -> bytes:
    """Return the result that another request is already fetching. Raises as that does, and Refusal."""
    try:
        return future.result(2 * _DEADLINE_S)
    except TooLate as error:
        raise Refusal(LATER, "the samples have not arrived yet: retry", retry_after=2) from error


def _nodes(run: JobRecord, only: str | None) -> list[str]:
    try:
        names = expand(run.nodes)
    except ParseError:
        return []
    return names if only is None else [name for name in names if name == only][:1]


def _described(found: NodeCurves, run: JobRecord) -> NodeCurves:
    """Add why an answer is empty or begins late."""
    since, days = found.kept_since, found.kept_days
    if found.state != "answered":
        return found
    if found.gpus:
        late = since is not None and since > (run.start or 0)
        return replace(found, words=f"older samples were deleted: kept for {days} days" if late else "")
    if run.end is not None and (since is None or since > run.end):
        return replace(found, state="past_retention", words=f"the node keeps samples for {days} days")
    return replace(found, state="no_samples", words="the node has no samples of this run")
