"""PyslurmClient: accounting and single jobs through pyslurm, the rest by the commands. Optional, never the default.

It needs a pyslurm of the release of the site's own Slurm; docs/how-to/slurmrestd.md says what it cannot tell.
"""

import importlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from gpuwaste.core.errors import GpuwasteError, SlurmError
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.accounting.sacct import BadRow
from gpuwaste.slurm.clients import pyslurm_jobs
from gpuwaste.slurm.clients.composed import ComposedClient
from gpuwaste.slurm.clients.pyslurm_probe import probe_pyslurm
from gpuwaste.slurm.submit.request import JobRequest


class Binding(Protocol):
    """What of pyslurm is used, so that a recording can stand in for it.

    `tells_gpus`: its accounting tells what a job was given, which that of Slurm 22.05 does not.
    """

    @property
    def tells_gpus(self) -> bool:
        """Whether accounting can be read with it."""
        ...

    def accounting(self, start: int, end: int, cluster: str) -> Iterable[Any]:
        """Return the pyslurm.db.Job objects of a window, UTC seconds."""
        ...

    def jobs(self, job_id: int) -> Iterable[Any]:
        """Return the pyslurm.Job objects of an id, of its array and of its het job."""
        ...


class Pyslurm:
    """The binding itself; `slurm_conf` names its slurm.conf, "" for Slurm's default."""

    def __init__(self, slurm_conf: str = "") -> None:
        """Import it. Raises SlurmError where a child process cannot."""
        if slurm_conf:  # Slurm's library reads its environment when it is loaded
            os.environ["SLURM_CONF"] = slurm_conf
        self.tells_gpus = probe_pyslurm().tells_gpus
        self._pyslurm = importlib.import_module("pyslurm")

    def accounting(self, start: int, end: int, cluster: str) -> Iterable[Any]:
        """Run slurmdb_jobs_get."""
        wanted = self._pyslurm.db.JobFilter(start_time=start, end_time=end, clusters=[cluster])
        return _values(self._pyslurm.db.Jobs.load(wanted))

    def jobs(self, job_id: int) -> Iterable[Any]:
        """Run slurm_load_jobs and choose."""
        names = ("id", "array_id", "heterogeneous_id")
        found = _values(self._pyslurm.Jobs.load())
        return [job for job in found if job_id in {getattr(job, name, None) for name in names}]


@dataclass(slots=True)
class PyslurmClient(ComposedClient):
    """`commands` answer all that pyslurm is not asked for."""

    binding: Binding

    def accounting(self, start: int, end: int) -> Iterator[JobRecord | BadRow]:
        """Yield the runs of a window; only the last run of a requeued job, and no peak memory.

        By the commands where this pyslurm does not tell a job's GPUs.
        """
        if not self.binding.tells_gpus:
            yield from self.commands.accounting(start, end)
            return
        cluster = self.cluster_name()
        yield from pyslurm_jobs.records(_asked(lambda: self.binding.accounting(start, end, cluster)), cluster)

    def request(self, job_id: int) -> list[JobRequest]:
        """Return what a job in slurmctld's memory asks for."""
        return [pyslurm_jobs.request(job) for job in _asked(lambda: self.binding.jobs(job_id))]


def _asked(ask: Any) -> list[Any]:
    """Return the objects; pyslurm's own errors become ours."""
    try:
        return list(ask())
    except GpuwasteError:
        raise
    except Exception as error:  # pyslurm's classes of errors cannot be imported to be named
        raise SlurmError(f"pyslurm: {type(error).__name__}: {error}: do Slurm's commands answer here?") from error


def _values(found: Any) -> Iterable[Any]:
    """Return the jobs of a collection, which is a mapping in some releases and a list in others."""
    return list(found.values() if hasattr(found, "values") else found)
