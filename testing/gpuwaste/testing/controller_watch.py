"""Watches a slurmctld while something is done to it: its pid, threads and files, its answers, what we make it log."""

import re
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gpuwaste.testing.cluster import ClusterError, LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

_QUESTIONS: Final = (("scontrol", "ping"), ("squeue", "-h", "-o", "%A"), ("sinfo", "-h"))
_OURS: Final = re.compile(r"gpuwaste: ")
_SAMPLE_S: Final = 0.05
_SPARE: Final = 6
"""Threads and open files by which an idle slurmctld differs from one moment to the next: its agents, its savers."""


@dataclass(slots=True)
class Seen:
    """What a watch saw; `answers_s` are the seconds of each answered question, `silent` the errors of the others."""

    threads_before: int = 0
    files_before: int = 0
    threads_peak: int = 0
    answers_s: list[float] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    log_lines: list[str] = field(default_factory=list)

    @property
    def ours(self) -> list[str]:
        """Lines that slurmctld logged for our plugin."""
        return [line for line in self.log_lines if _OURS.search(line)]


class ControllerWatch:
    """A context manager around a fault; `seen` fills meanwhile, `check` says afterwards what is not as before."""

    def __init__(
        self,
        cluster: LoopbackCluster,
        name: str = "slurmctld",
        *,
        restarts: bool = False,
        reconfigures: bool = False,
        like: str = "",
    ) -> None:
        """`restarts` says that slurmctld is restarted meanwhile: then its pid may change and a question may fail.

        `reconfigures` says that it reads its configuration anew: 22.05 then closes a connection now and then, also
        without our plugin (205 of 4,319 questions beside 2,696 reconfigurations), and a question is asked once more.
        `like` names another slurmctld whose threads and files are the measure: one that stands by has few.
        """
        self.cluster, self.name, self.restarts = cluster, name, restarts
        self._like = like or name
        self._tries = 2 if reconfigures else 1
        self.seen = Seen()
        self._log = cluster.directory / "log" / f"{name}.log"
        self._over = threading.Event()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._sample, self._ask)]

    def __enter__(self) -> Self:
        self._pid = self.cluster.processes[self.name].pid
        measure = self.cluster.processes[self._like].pid
        self.seen.threads_before, self.seen.files_before = threads(measure), files(measure)
        self._from = self._log.stat().st_size
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        with self._log.open("rb") as log:
            log.seek(self._from)
            self.seen.log_lines = log.read().decode(errors="replace").splitlines()

    def _sample(self) -> None:
        while not self._over.wait(_SAMPLE_S):
            self.seen.threads_peak = max(self.seen.threads_peak, threads(self.cluster.processes[self.name].pid))

    def _ask(self) -> None:
        while not self._over.is_set():
            for question in _QUESTIONS:
                self._question(question)
            self._over.wait(1)

    def _question(self, question: Sequence[str]) -> None:
        errors = list[str]()
        while len(errors) < self._tries:
            began = time.monotonic()
            try:
                self.cluster.run(question, timeout_s=30)
            except (ClusterError, subprocess.SubprocessError) as error:
                errors.append(str(error))
            else:
                self.seen.answers_s.append(time.monotonic() - began)
                return
        self.seen.silent.append(errors[-1])

    def check(self, timeout_s: float = 30) -> list[str]:
        """Return what is not as it was: wait for threads and files to come down first. [] when all is well."""
        faults = [] if self.restarts else [f"no answer: {text}" for text in self.seen.silent]
        process = self.cluster.processes[self.name]
        if not process.alive():
            return [*faults, f"{self.name} has ended: {process.tail()}"]
        if process.pid != self._pid and not self.restarts:
            faults.append(f"{self.name} has pid {process.pid}, not {self._pid}")
        if not self.seen.answers_s:
            faults.append("no question was answered")
        for what, count, before in (
            ("threads", threads, self.seen.threads_before),
            ("open files", files, self.seen.files_before),
        ):
            try:
                wait_until(lambda: count(process.pid) <= before + _SPARE, timeout_s, what, poll_s=0.2)  # noqa: B023
            except ClusterError:
                faults.append(f"{self.name} has {count(process.pid)} {what}, {before} before")
        return faults


def threads(pid: int) -> int:
    """Return how many threads a process has, 0 for none such."""
    try:
        found = re.search(r"^Threads:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def files(pid: int) -> int:
    """Return how many files a process has open, 0 for none such."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0
