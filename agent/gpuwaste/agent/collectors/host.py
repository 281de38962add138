"""The host: CPU seconds, memory, processes and suspension of each job, from its cgroup or from its processes.

The cgroup is preferred; a job that has none (proctrack/linuxproc) is the descendants of its slurmstepd.
"""

from pathlib import Path
from typing import Final

from gpuwaste.agent.collectors import CollectorSettings
from gpuwaste.agent.collectors._cgroup import find_jobs, read_group
from gpuwaste.agent.collectors._processes import JobProcesses
from gpuwaste.agent.errors import CollectorError
from gpuwaste.agent.model import HostUse
from gpuwaste.agent.step_daemons import StepDaemons

KIND: Final = "host"


def create(settings: CollectorSettings) -> "HostUseCollector":
    """Make the collector."""
    return HostUseCollector(settings.cgroup_root, settings.proc_root, settings.spool_dir, settings.node)


class HostUseCollector:
    """Reads the use of all jobs on one node."""

    name = "host"

    def __init__(self, cgroup_root: Path, proc_root: Path, spool_dir: Path, node: str) -> None:
        self._cgroup_root = cgroup_root
        self._node = node
        self._daemons = StepDaemons(proc_root, spool_dir, node)
        self._processes = JobProcesses(proc_root, self._daemons)

    def use(self) -> dict[int, HostUse]:
        """Return the use by job id. Raises CollectorError where slurmd's spool directory cannot be read."""
        try:
            groups = find_jobs(self._cgroup_root, self._node, self._daemons.jobs_by_cgroup)
            found = {job: read_group(group, self._processes.all_stopped) for job, group in groups.items()}
            counted = {job for job, use in found.items() if use.cpu_s is not None and use.mem_b is not None}
            others = self._processes.use(without=counted)
        except OSError as error:
            raise CollectorError(f"host: {error.filename} cannot be read: {error.strerror}") from error
        return found | {job: _join(found[job], use) if job in found else use for job, use in others.items()}

    def close(self) -> None:
        """Forget which processes are slurmstepds."""
        self._daemons.forget()


def _join(group: HostUse, processes: HostUse) -> HostUse:
    """Take what the cgroup counts, and from the processes what it does not (a controller that is not in use)."""
    return HostUse(
        cpu_s=processes.cpu_s if group.cpu_s is None else group.cpu_s,
        mem_b=processes.mem_b if group.mem_b is None else group.mem_b,
        pids=group.pids | processes.pids,
        suspended=group.suspended,
    )
