"""The jobs that slurmctld has now, read when an answer would be yes and shared by all answers for a while."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import ParseError, SlurmError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.hostlist import expand

SHARED_S: Final = 30.0
_UNANSWERED: Final = log_event.warning(
    "idleness-jobs-unanswered: cannot read the jobs of slurmctld: {error}",
    "slurmctld did not answer. Until it does, idleness is unknown.",
)


@dataclass(frozen=True, slots=True)
class SlurmctldJobs:
    """The jobs in slurmctld's memory at `read` or later, UTC seconds; several where an id names a pending array too."""

    read: int
    jobs: Mapping[int, Sequence[RunningJob]]

    def on(self, node: str) -> list[RunningJob]:
        """Return the jobs that have, or had, this node."""
        return [job for found in self.jobs.values() for job in found if job.start is not None and node in _nodes(job)]


def _nodes(job: RunningJob) -> frozenset[str]:
    """Return the nodes of a job; of one that has ended slurmctld prints only the hostlist."""
    try:
        return frozenset(job.nodes) | frozenset(expand(job.node_list) if job.node_list else ())
    except ParseError:
        return frozenset(job.nodes)


class SlurmJobs(Part):
    """Queries slurmctld at most every SHARED_S. For any thread; blocks on Slurm."""

    def __init__(self, slurm: SlurmClient, clock: Clock) -> None:
        self._slurm = slurm
        self._clock = clock
        self._lock = threading.Lock()
        self._found: SlurmctldJobs | None = None
        self._asked_us: int | None = None

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        ports = parts.get(HostPorts)
        return cls(ports.slurm, ports.clock)

    def now(self) -> SlurmctldJobs | None:
        """Return the jobs, at most SHARED_S old; None where slurmctld did not answer."""
        with self._lock:
            asked_us = self._clock.mono_us()
            if self._asked_us is None or asked_us - self._asked_us > SHARED_S * 1e6:
                self._found, self._asked_us = self._read(), asked_us
            return self._found

    def _read(self) -> SlurmctldJobs | None:
        read, jobs = self._clock.utc_s(), dict[int, list[RunningJob]]()
        try:
            for job in self._slurm.jobs():
                jobs.setdefault(job.job_id, []).append(job)
        except (SlurmError, ParseError) as error:
            _UNANSWERED.log(error=error)
            return None
        return SlurmctldJobs(read, jobs)
