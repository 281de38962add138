"""A site under a load of submissions, and the ordeal that every fault of the submit path goes through."""

import contextlib
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.system.fault_cases import CASES, Measured, write_measured

from gpuwaste.slurm.formats.printed_run import token_of
from gpuwaste.testing.cluster import LoopbackCluster, ManagedProcess
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.controller_watch import ControllerWatch
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site
from gpuwaste.testing.submit_load import ACCOUNTED, LoadResult, SbatchCall, SbatchResult, SubmitLoad, submit

FAILING: Final = "#!/bin/sh\nexit 7\n"
"""The script of the doomed: it failed before, and is refused unchanged while the advisor is well."""
POLICY: Final = """
[policy]
mode = "reject"
[targets.failure]
reject = 0.2
[budget]
rejects_per_user_per_day = 1000000
[sample]
pass_ratio = 0.0
[floor]
precision = 0.0
"""
PLUGIN: Final = {"breaker_first_ms": 100, "breaker_max_ms": 400, "deadline_us": 250_000}
"""A breaker that probes soon, so that tests need not wait, and a deadline for two cores that others use too."""
_MOST_LINES: Final = 6
"""Lines of ours in slurmctld's log for one fault: opened, refused, closed, where it may come twice."""
_EVENT: Final = re.compile(r'gpuwaste_advisor_plugin_events_total{event="(\w+)",via="c"} (\S+)')
_PER_PHASE: Final = 30
_SUBMITTERS: Final = 4
_PAUSE_S: Final = 0.1
"""Between two submissions of a submitter: without one, what is waited for waits for the load."""
_REFUSED: Final = "gpuwaste"


def make_submission(user: str, name: str, doomed: bool) -> SbatchCall:
    """Return a job of a GPU, every third an array; a doomed one has the name and the script of those that failed."""
    if doomed:
        return SbatchCall(user, name.replace("load", "doomed"), script=FAILING, doomed=True)
    array = ("--array=0-3",) if name.endswith(("3", "6", "9")) else ()
    return SbatchCall(user, name, ("--gres=gpu:1", *array))


@dataclass
class Scene:
    """The running site of a module, and what it does to it."""

    cluster: LoopbackCluster
    site: Site

    def counted(self) -> dict[str, int]:
        """Return the plugin's totals as the advisor knows them, by event."""
        url = f"http://127.0.0.1:{self.site.advisor_port}/metrics"
        with urllib.request.urlopen(url, timeout=patient(10)) as answer:
            found = _EVENT.findall(answer.read().decode())
        return {event: int(float(value)) for event, value in found}

    def metric(self, name: str) -> float:
        """Return a gauge of the advisor."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.site.advisor_port}/metrics", timeout=patient(10)
        ) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.split()[-1]) for line in lines if line.startswith(f"gpuwaste_advisor_{name} "))

    def restart_advisor(self, prefix: Sequence[str] = ()) -> None:
        """Stop the advisor in order and start it again."""
        assert self.site.advisor
        self.site.advisor.stop()
        self.site.start_advisor(prefix=prefix)

    def teach(self) -> None:
        """Let each user's doomed jobs fail, and wait until they are refused for it."""
        wait_until(self.asked, 60, "a verdict", self.tails, poll_s=0.5)  # a listening advisor may not serve yet
        jobs = [
            self.cluster.sbatch(FAILING, user, job_name="doomed1.1", array="0-2", output="/dev/null")
            for user in ACCOUNTED
        ]
        for job in jobs:
            self.cluster.wait_job(job, "FAILED")
        for user in ACCOUNTED:
            wait_until(lambda: self.refused(user), 60, f"{user}'s doomed to be refused", self.tails, poll_s=0.5)  # noqa: B023

    def refused(self, user: str = "alice") -> bool:
        """Submit one doomed job now and tell whether it was refused by us: the advisor answers and is believed."""
        name = f"load{time.monotonic_ns()}.0"
        outcome = submit(self.cluster, make_submission(user, name, doomed=True))
        if outcome.job_id is not None:
            self.cluster.run(["scancel", str(outcome.job_id)])
        return outcome.job_id is None and _REFUSED in outcome.message

    def wait_verdicts(self, timeout_s: float = 40) -> None:
        """Wait until verdicts are given: the advisor is well and the breaker is closed."""
        wait_until(self.refused, timeout_s, "a doomed job to be refused", self.tails, poll_s=0.1)

    def asked(self) -> bool:
        """Submit a job and tell whether it carries a token: the advisor was asked and has answered."""
        outcome = submit(self.cluster, make_submission("alice", f"load{time.monotonic_ns()}.0", doomed=False))
        (job,) = self.cluster.show_job(outcome.job_id or 0)
        self.cluster.run(["scancel", str(outcome.job_id)])
        return bool(token_of(job.get("AdminComment", "")))

    def cancel(self, result: LoadResult) -> None:
        """Cancel the jobs of a load."""
        self.cluster.run(["scancel", *(str(outcome.job_id) for outcome in result.accepted)])

    def tails(self) -> str:
        """Return the last lines of those who took part."""
        taking_part = [self.cluster.processes["slurmctld"], self.site.advisor]
        return "\n".join(process.tail() for process in taking_part if process)

    @contextlib.contextmanager
    def no_socket(self) -> Iterator[None]:
        """Move the advisor's socket away: it lives on, and nobody finds it."""
        path = self.site.advisor_socket
        aside = path.with_suffix(".aside")
        path.rename(aside)
        try:
            yield
        finally:
            aside.rename(path)

    @contextlib.contextmanager
    def in_its_place(self, way: str, user: str = "gpuwaste") -> Iterator[ManagedProcess]:
        """Put an advisor that is at fault where the plugin asks."""
        home = self.cluster.directory / "home" / user
        path = home / "f.sock"
        with self.no_socket():
            argv = self.site.runtime.module("gpuwaste.testing.faulty_advisor", str(path), way)
            faulty = self.cluster.spawn(argv, user=user, env=self.site.runtime.env, name=f"faulty-{way}")
            faulty.wait_for(path.with_suffix(".ready").exists, 30, "the faulty advisor to listen")
            path.rename(self.site.advisor_socket)
            try:
                yield faulty
            finally:
                faulty.stop()
                self.site.advisor_socket.unlink()
                for left in home.glob("f.*"):
                    left.unlink()


@dataclass
class Ordeal:
    """One fault under load, from a well site to a well site; `run` asserts what holds for every fault.

    `fails_open` says that doomed jobs pass while it lasts; False that they are refused all the while, None that both
    may be. `restarts` says that slurmctld itself is restarted by the fault, `reconfigures` that it reads its
    configuration anew; `excused` names jobs that it may lose at a restart, and `watched` is the daemon that is in
    charge afterwards.
    """

    scene: Scene
    key: str
    fault: AbstractContextManager[object]
    fails_open: bool | None = True
    restarts: bool = False
    reconfigures: bool = False
    after: Callable[[], object] = lambda: None
    excused: Callable[[LoadResult], Collection[str]] = lambda _: ()
    watched: str = "slurmctld"
    load: SubmitLoad = field(init=False)
    watch: ControllerWatch = field(init=False)

    def run(self) -> LoadResult:
        """Go through it and return what became of every submission."""
        assert self.key in CASES
        self.scene.wait_verdicts()
        before = self.scene.counted()
        cluster = self.scene.cluster
        self.watch = ControllerWatch(
            cluster, self.watched, restarts=self.restarts, reconfigures=self.reconfigures, like="slurmctld"
        )
        self.load = SubmitLoad(cluster, submitters=_SUBMITTERS, doomed_every=5, make=make_submission, pause_s=_PAUSE_S)
        with self.watch, self.load:
            self.progress("before the fault")
            with self.fault:
                began = time.monotonic()
                self.progress("during the fault")
                ended = time.monotonic()
            self.after()
            self.scene.wait_verdicts()
            well_again = time.monotonic()
            self.progress("after the fault")
        result = self.load.result
        self._check(result, began, ended, well_again)
        record(self.key, result, before, None if self.restarts else self.scene.counted())
        self.scene.cancel(result)
        return result

    def progress(self, what: str) -> None:
        """Wait until the load has got on by a good part."""
        target = self.load.count() + _PER_PHASE
        wait_until(lambda: self.load.count() >= target, 120, f"submissions {what}", self.scene.tails)

    def _check(self, result: LoadResult, began: float, ended: float, well_again: float) -> None:
        assert result.wrong(away=self.restarts or self.reconfigures) == []
        assert self.load.missing_or_doubled(self.excused(result)) == []
        assert self.watch.check() == []
        assert len(self.watch.seen.ours) <= _MOST_LINES, self.watch.seen.ours
        doomed = [o for o in result.outcomes if o.submission.doomed and not o.cut]
        meanwhile = [o for o in doomed if o.began_s >= began and o.ended_s <= ended]
        assert meanwhile or self.restarts
        if self.fails_open is not None:
            assert {o.job_id is not None for o in meanwhile} <= {self.fails_open}, _messages(meanwhile)
        afterwards = [o for o in doomed if o.began_s >= well_again]
        assert afterwards
        assert all(o.job_id is None for o in afterwards), _messages(afterwards)


def record(key: str, result: LoadResult, before: Mapping[str, int], now: Mapping[str, int] | None) -> None:
    """Keep a case's figures where `make faults` asked for them; `now` is None where the plugin began anew."""
    path = os.environ.get("GPUWASTE_FAULTS_OUT")
    if not path:
        return

    def more(*events: str) -> int | None:
        return None if now is None else sum(now.get(event, 0) - before.get(event, 0) for event in events)

    measured = Measured(
        slurm=slurm_version(),
        submissions=len(result.outcomes),
        refused=sum(not outcome.cut for outcome in result.refused),
        cut=sum(outcome.cut for outcome in result.outcomes),
        longest_ms=round(result.longest_s * 1000),
        missed=more("missed", "refused"),
        opened=more("opened"),
    )
    write_measured(key, measured, Path(path))


def slurm_version() -> str:
    """Return the release under test, such as 22.05.8."""
    done = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=True, env={"PATH": "/usr/sbin"})
    return done.stdout.split()[-1]


def _messages(outcomes: list[SbatchResult]) -> list[str]:
    return [f"{o.submission.name} {o.job_id} {o.message}" for o in outcomes]
