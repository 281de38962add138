"""Which runs of jobs are on this node, from local facts: slurmstepd's sockets, and the files of prolog and epilog.

A run begins with its prolog's file, or with its first socket if no prolog writes one. It ends with its epilog's file;
or, if that is missing, at the tick at which its last socket is gone, if the run had a socket for all its life. A run
that only had numbered steps (salloc without an extern step) may continue without a socket: it continues while its
prolog's file exists, else it is uncertain: its time is unknown until a step begins again, or its end is reported.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gpuwaste.agent.facts.prolog_files import JobFile, PrologSource
from gpuwaste.agent.facts.run_facts import LocalRun
from gpuwaste.agent.step_daemons import BATCH_STEP, EXTERN_STEP, INTERACTIVE_STEP, StepSocket, listener, scan_steps
from gpuwaste.core.errors import SlurmError

_ANCHORS: Final = frozenset({BATCH_STEP, EXTERN_STEP, INTERACTIVE_STEP})
_LISTEN_US: Final = 60_000_000  # between two checks which sockets still have a listener
_BEFORE_US: Final = 2_000_000  # clocks of file times are coarse
_GIVE_UP_US: Final = 600_000_000  # an unconfirmed uncertain run then ends where it was last seen
_TOLD_MAX: Final = 20_000  # ends that are remembered

Steps = dict[int, dict[int, int]]
"""Job id -> step -> time of its socket."""


class RunTracker:
    """The runs of this node, tick by tick."""

    def __init__(
        self,
        node: str,
        spool_dir: Path,
        prolog: PrologSource,
        proc: Path = Path("/proc"),
        boot_us: Callable[[], int] | None = None,
    ) -> None:
        self._node = node
        self._spool = spool_dir
        self._prolog = prolog
        self._boot_us = boot_us() if boot_us else _boot_us(proc)
        self._sockets: frozenset[StepSocket] = frozenset()
        self._alive: frozenset[StepSocket] = frozenset()
        self._listened_us = 0
        self._first = True
        self._told: dict[int, int] = {}  # job id -> the end of its last run
        self.runs: dict[int, LocalRun] = {}
        self.health = ""

    def update(self, now_us: int, pids: Mapping[int, frozenset[int]]) -> list[LocalRun]:
        """Read the facts again, and return the runs that ended since the last update, with their `end_us`."""
        self._prolog.scan()
        steps = self._steps(now_us)
        ended = [run for run in list(self.runs.values()) if self._has_ended(run, steps.get(run.job_id, {}), now_us)]
        for run in ended:
            self._end(run, run.end_us or now_us)
        for job_id in steps.keys() | self._prolog.starts.keys():
            if job_id in self.runs:
                continue
            begun = self._begin(job_id, steps.get(job_id, {}), now_us)
            if begun is not None and begun.end_us is None:
                self.runs[job_id] = begun
            elif begun is not None:
                ended.append(begun)
        for run in self.runs.values():
            self._refresh(run, steps.get(run.job_id, {}), now_us)
            run.pids = pids.get(run.job_id, frozenset())
        self._first = False
        if len(self._told) > _TOLD_MAX:
            self._told = dict(list(self._told.items())[-_TOLD_MAX // 2 :])
        return ended

    def vouch(self, run: LocalRun, now_us: int, running: bool, end_us: int | None) -> LocalRun | None:
        """Apply an answer of hub or slurmctld about a run without a socket: it runs, or it ended and is returned."""
        if run.steps or self.runs.get(run.job_id) is not run:
            return None
        if running:
            run.seen_us = run.vouched_us = now_us
            run.certain = run.prolog_us is not None  # without its file its end would go unnoticed
            return None
        return self._end(run, min(now_us, max(run.since_us, end_us if end_us is not None else run.seen_us)))

    def _end(self, run: LocalRun, end_us: int) -> LocalRun:
        run.end_us = end_us
        self.runs.pop(run.job_id, None)
        self._told[run.job_id] = end_us
        return run

    def _steps(self, now_us: int) -> Steps:
        try:
            sockets = scan_steps(self._spool, self._node)
        except SlurmError as error:
            self.health = str(error)
            sockets = self._sockets  # an unreadable directory is no sign of an end
        else:
            self.health = ""
        if sockets != self._sockets or not 0 <= now_us - self._listened_us < _LISTEN_US:
            self._sockets, self._listened_us = sockets, now_us
            self._alive = self._listening(sockets)
        found: Steps = {}
        for socket in self._alive:
            steps = found.setdefault(socket.job_id, {})  # the components of a het job share the number of a step
            steps[socket.step_id] = min(socket.mtime_us, steps.get(socket.step_id, socket.mtime_us))
        return found

    def _listening(self, sockets: frozenset[StepSocket]) -> frozenset[StepSocket]:
        """Leave out sockets without a listener: their slurmstepd was killed."""
        return frozenset(item for item in sockets if listener(self._spool / item.name) is not None)

    def _has_ended(self, run: LocalRun, steps: dict[int, int], now_us: int) -> bool:
        start, end = self._prolog.starts.get(run.job_id), self._prolog.ends.get(run.job_id)
        if end is not None and end.time_us > run.since_us:
            run.end_us = min(end.time_us, now_us)
        elif _begins_again(run, steps, start):
            run.end_us = run.seen_us
        elif not steps and run.steps and run.anchored:
            run.end_us = now_us
        elif not run.certain and not steps and now_us - run.seen_us > _GIVE_UP_US:
            run.end_us = run.seen_us
        return run.end_us is not None

    def _begin(self, job_id: int, steps: dict[int, int], now_us: int) -> LocalRun | None:
        start, end = self._prolog.starts.get(job_id), self._prolog.ends.get(job_id)
        if start is not None and (start.time_us < self._boot_us or start.time_us <= self._told.get(job_id, 0)):
            start = None  # of a run that has ended
        first_us = min(steps.values(), default=None)
        if start is not None and end is not None and end.time_us >= start.time_us:
            if first_us is None:
                return self._missed(LocalRun(job_id, start.time_us, end.time_us, end_us=end.time_us), start)
            start = None
        if start is not None and first_us is not None and start.time_us > first_us + _BEFORE_US:
            start = None
        if start is None and first_us is None:
            return None
        run = LocalRun(job_id, min(start.time_us if start else first_us or now_us, now_us), now_us)
        run.after_us = self._told.get(job_id, 0)
        _read_start(run, start)
        # At the agent's start a file without a socket may be a leftover: it needs confirmation.
        run.certain = bool(steps) or not self._first
        return run

    def _missed(self, run: LocalRun, start: JobFile) -> LocalRun:
        """Return a run that began and ended between two ticks; uncertain where it may have been reported before."""
        run.after_us = self._told.get(run.job_id, 0)
        _read_start(run, start)
        run.certain = not self._first
        self._told[run.job_id] = run.end_us or run.since_us
        return run

    def _refresh(self, run: LocalRun, steps: dict[int, int], now_us: int) -> None:
        if steps:
            run.certain = True
        elif run.prolog_us is None:
            run.certain = False
        if run.certain:
            run.seen_us = now_us
        run.anchored = run.anchored or bool(steps.keys() & _ANCHORS)
        run.steps = steps


def _read_start(run: LocalRun, start: JobFile | None) -> None:
    if start is not None:
        run.prolog_us = start.time_us
        run.start, run.restarts = start.number("start"), start.number("restarts")


def _begins_again(run: LocalRun, steps: dict[int, int], start: JobFile | None) -> bool:
    """Return whether a job was requeued or its id reused: a newer prolog, or a step that began a second time."""
    if start is not None and start.time_us > (run.prolog_us or run.since_us) + _BEFORE_US:
        return True
    return any(run.steps.get(step, time_us) != time_us for step, time_us in steps.items())


def _boot_us(proc: Path) -> int:
    try:
        for line in (proc / "stat").read_text(encoding="ascii").splitlines():
            if line.startswith("btime "):
                return int(line.split()[1]) * 1_000_000
    except (OSError, ValueError):
        return 0
    return 0
