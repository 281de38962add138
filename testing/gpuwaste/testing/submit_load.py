"""A load of submissions on a real slurmctld: many submitters side by side, each with the real sbatch.

    with SubmitLoad(cluster, submitters=8) as load:
        ...  # what goes wrong meanwhile
    assert load.result.wrong() == []
    assert load.missing_or_doubled() == []

Every job has a name of its own, by which it is found again: an id may be given twice where a slurmctld is killed
before it saved. Jobs are held: the load is one of submissions, not of starts.
"""

import itertools
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_host import USERS

_CUT: Final = re.compile(
    r"Zero Bytes|timed out|Unable to contact|Connection (?:refused|reset)|Transport endpoint|missing socket"
    r"|communication"
)
ACCOUNTED: Final = tuple(USERS[:3])
"""Users who may submit: dave has no account."""


@dataclass(frozen=True, slots=True)
class SbatchCall:
    """One call of sbatch: who, under which job name, with which further arguments and script.

    `doomed` marks one that a policy in force refuses while the advisor is well; a refusal of any other is wrong.
    """

    user: str
    name: str
    arguments: tuple[str, ...] = ()
    script: str = "#!/bin/sh\ntrue\n"
    doomed: bool = False
    env: Mapping[str, str] = field(default_factory=dict)

    def argv(self) -> list[str]:
        """Return the command line; the script comes on standard input."""
        return ["sbatch", "--parsable", "--hold", "--output=/dev/null", f"--job-name={self.name}", *self.arguments]


@dataclass(frozen=True, slots=True)
class SbatchResult:
    """What became of one submission. Times are those of the steady clock, seconds."""

    submission: SbatchCall
    job_id: int | None
    message: str
    began_s: float
    ended_s: float

    @property
    def latency_s(self) -> float:
        """Seconds that sbatch took, its own start included."""
        return self.ended_s - self.began_s

    @property
    def cut(self) -> bool:
        """Whether slurmctld went away before it answered: sbatch cannot know then whether the job was accepted."""
        return self.job_id is None and _CUT.search(self.message) is not None


@dataclass(slots=True)
class LoadResult:
    """All outcomes of a load, in the order in which they ended."""

    outcomes: list[SbatchResult] = field(default_factory=list)

    @property
    def accepted(self) -> list[SbatchResult]:
        """Those with a job id."""
        return [outcome for outcome in self.outcomes if outcome.job_id is not None]

    @property
    def refused(self) -> list[SbatchResult]:
        """Those without one."""
        return [outcome for outcome in self.outcomes if outcome.job_id is None]

    @property
    def longest_s(self) -> float:
        """The longest submission, 0 without any."""
        return max((outcome.latency_s for outcome in self.outcomes), default=0.0)

    def wrong(self, *, away: bool = False) -> list[str]:
        """Return a line for each refusal that no policy explains; nor, where slurmctld may be `away`, its absence."""
        wrong = [o for o in self.refused if not (away if o.cut else o.submission.doomed)]
        return [f"{o.submission.name}: {o.message}" for o in wrong]

    def since(self, began_s: float) -> "LoadResult":
        """Return those that began at or after an instant of the steady clock."""
        return LoadResult([outcome for outcome in self.outcomes if outcome.began_s >= began_s])


def submit(cluster: LoopbackCluster, submission: SbatchCall, timeout_s: float = 120) -> SbatchResult:
    """Run one sbatch to its end. Raises ClusterError when it does not answer within `timeout_s`."""
    began = time.monotonic()
    done = cluster.run(
        submission.argv(),
        submission.user,
        env=submission.env,
        stdin=submission.script,
        timeout_s=timeout_s,
        check=False,
    )
    ended = time.monotonic()
    printed = done.stdout.partition(";")[0].strip()  # nothing for a test alone
    job_id = int(printed) if done.returncode == 0 and printed else None
    return SbatchResult(submission, job_id, done.stderr.strip(), began, ended)


class SubmitLoad:
    """Submitters in threads, each as fast as sbatch lets it, from `start` to `stop`; a context manager."""

    def __init__(
        self,
        cluster: LoopbackCluster,
        *,
        submitters: int = 4,
        doomed_every: int = 0,
        make: Callable[[str, str, bool], SbatchCall] | None = None,
        users: Sequence[str] = ACCOUNTED,
        limit: int | None = None,
        pause_s: float = 0.0,
        timeout_s: float = 120,
    ) -> None:
        """`make(user, name, doomed)` builds a submission; every `doomed_every`th is doomed; `limit` ends the load.

        `pause_s` is what each submitter rests after each submission.
        """
        self.cluster = cluster
        self.result = LoadResult()
        self.tag = f"{uuid.uuid4().int % 10**10:010}"  # digits alone: to a model all jobs of all loads have one name
        self._make = make or (lambda user, name, doomed: SbatchCall(user, name, doomed=doomed))
        self._users, self._doomed_every, self._limit = users, doomed_every, limit
        self._timeout_s, self._pause_s = timeout_s, pause_s
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._submitters = submitters
        self._threads: ThreadPoolExecutor | None = None
        self._running: list[object] = []

    def start(self) -> None:
        """Let all submitters begin."""
        self._threads = ThreadPoolExecutor(self._submitters, thread_name_prefix="submitter")
        self._running = [self._threads.submit(self._submit_on) for _ in range(self._submitters)]

    def stop(self) -> LoadResult:
        """Let each submitter finish what it does and return all outcomes. Raises what a submitter raised."""
        self._over.set()
        return self.join()

    def join(self) -> LoadResult:
        """Wait until all submitters have ended, by `stop` or at the limit. Raises what a submitter raised."""
        assert self._threads is not None  # noqa: S101 narrows the type
        self._threads.shutdown(wait=True)
        for future in self._running:
            future.result()  # type: ignore[attr-defined]
        return self.result

    def _submit_on(self) -> None:
        while not self._over.is_set():
            number = next(self._numbers)
            if self._limit is not None and number >= self._limit:
                return
            doomed = bool(self._doomed_every) and number % self._doomed_every == self._doomed_every - 1
            user = self._users[number % len(self._users)]
            outcome = submit(self.cluster, self._make(user, f"load{self.tag}.{number}", doomed), self._timeout_s)
            with self._lock:
                self.result.outcomes.append(outcome)
            self._over.wait(self._pause_s)

    def count(self) -> int:
        """Return how many submissions have ended so far."""
        with self._lock:
            return len(self.result.outcomes)

    def missing_or_doubled(self, excused: Collection[str] = ()) -> list[str]:
        """Compare with slurmctld's queue: each accepted job is there once, under its id and name, and no other is.

        Returns a line for each difference; call it when the load is over and before its jobs are cancelled. Jobs of
        the names `excused` may be there or not: those that a killed slurmctld had not saved.
        """
        return compare(self.result, queued(self.cluster, self.tag), excused)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if kind is None:
            self.join()
        elif self._threads is not None:
            self._threads.shutdown(wait=True)


def queued(cluster: LoopbackCluster, tag: str) -> list[tuple[int, str]]:
    """Return (id, name) of slurmctld's jobs, ended ones too, whose name contains the tag of a load."""
    lines = cluster.run(["squeue", "-ha", "-t", "all", "-o", "%A %j"]).stdout.split("\n")
    rows = (line.split(" ", 1) for line in lines if " " in line)
    return [(int(job), name) for job, name in rows if f"{tag}." in name]


def compare(result: LoadResult, rows: Sequence[tuple[int, str]], excused: Collection[str] = ()) -> list[str]:
    """Return a line for each accepted job that is not queued once, and for each queued one that was not accepted."""
    found = dict.fromkeys(rows)
    told = dict.fromkeys((outcome.job_id or 0, outcome.submission.name) for outcome in result.accepted)
    open_names = {outcome.submission.name for outcome in result.refused if outcome.cut} | set(excused)
    missing = [row for row in told if row not in found and row[1] not in open_names]
    alien = [row for row in found if row not in told and row[1] not in open_names]
    names = Counter(name for _, name in rows)
    return [
        *(f"job {job} ({name}) was accepted and is not queued" for job, name in missing),
        *(f"job {job} ({name}) is queued and was not accepted" for job, name in alien),
        *(f"{name} is queued {count} times" for name, count in names.items() if count > 1),
    ]
