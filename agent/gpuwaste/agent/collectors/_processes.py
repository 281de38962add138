"""Processes of jobs where there are no cgroups: the descendants of each slurmstepd."""

import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

import psutil

from gpuwaste.agent.model import HostUse
from gpuwaste.agent.step_daemons import StepDaemons, stat_fields

_STOPPED: Final = frozenset({psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP, psutil.STATUS_ZOMBIE})


class JobProcesses:
    """Adds up what the descendants of each job's slurmstepds use."""

    def __init__(self, proc: Path, daemons: StepDaemons) -> None:
        self._proc = proc
        self._daemons = daemons
        self._cpu_s: dict[int, float] = {}

    def all_stopped(self, pids: frozenset[int]) -> bool:
        """Whether there are processes and none of them can run."""
        states = (self._state(pid) for pid in sorted(pids))
        known = False
        for state in states:
            if state is None:
                continue
            if state not in _STOPPED:
                return False
            known = known or state != psutil.STATUS_ZOMBIE
        return known

    def use(self, without: AbstractSet[int]) -> dict[int, HostUse]:
        """Return the use of every job that has a slurmstepd here, but those in `without`.

        Raises OSError where the spool directory or /proc cannot be read.
        """
        stepds = [(item.job_id, item.pid) for item in self._daemons.find() if item.job_id not in without]
        children = self._children() if stepds else {}
        pids: dict[int, set[int]] = {}
        for job, stepd in stepds:
            pids.setdefault(job, set()).update(_descendants(children, stepd))
        self._cpu_s = {job: seconds for job, seconds in self._cpu_s.items() if job in pids}
        return {job: self._use(job, frozenset(members)) for job, members in pids.items()}

    def _use(self, job: int, pids: frozenset[int]) -> HostUse:
        cpu_s, mem_b = 0.0, 0
        for pid in pids:
            try:
                process = psutil.Process(pid)
                with process.oneshot():
                    times = process.cpu_times()
                    mem_b += process.memory_info().rss
            except psutil.Error:
                continue
            cpu_s += times.user + times.system + times.children_user + times.children_system
        # A process that nobody waited for takes its time with it: the counter never goes back.
        self._cpu_s[job] = max(cpu_s, self._cpu_s.get(job, 0.0))
        return HostUse(self._cpu_s[job], mem_b, pids, suspended=self.all_stopped(pids))

    def _children(self) -> dict[int, list[int]]:
        """Return the children of every process of this host."""
        children: dict[int, list[int]] = {}
        for name in os.listdir(self._proc):  # noqa: PTH208 names only, each tick
            if name.isdigit():
                fields = stat_fields(self._proc, int(name))
                if fields:
                    children.setdefault(int(fields[1]), []).append(int(name))
        return children

    def _state(self, pid: int) -> str | None:
        fields = stat_fields(self._proc, pid)
        letters = {"T": psutil.STATUS_STOPPED, "t": psutil.STATUS_TRACING_STOP, "Z": psutil.STATUS_ZOMBIE}
        return letters.get(fields[0], psutil.STATUS_RUNNING) if fields else None


def _descendants(children: Mapping[int, list[int]], pid: int) -> set[int]:
    found: set[int] = set()
    waiting = list(children.get(pid, ()))
    while waiting:
        child = waiting.pop()
        if child not in found:
            found.add(child)
            waiting.extend(children.get(child, ()))
    return found
