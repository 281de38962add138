"""Such jobs: the last runs of one user's jobs of one name, GPU type and number of GPUs, and what the site offers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple

from gpuwaste.jobs.history.job_names import normal_name
from gpuwaste.ledger.right_size.gpu_sizes import GpuSize
from gpuwaste.ledger.right_size.rule import GpuActivity, Growths, Need, Peak, need_of
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey

COMPLETED: Final = "COMPLETED"
_JOB: Final = (
    "cluster", "job_id", "submit", "printed_id", "user", "account", "partition", "name", "submit_line", "gpus",
    "gpu_type", "n_nodes", "cpus", "mem_req_b", "time_limit_s", "state",
)  # fmt: skip
GroupKey = tuple[str, str, str, int, str]
"""Cluster, user, normalised name, GPUs, GPU type."""


class SizedRun(NamedTuple):
    """One run that ended, a row of query right_size_runs: what it was given and what it used; None is "not known"."""

    cluster: str
    job_id: int
    run_start: int
    submit: int
    printed_id: str
    user: str
    account: str
    partition: str
    name: str
    submit_line: str
    gpus: int
    gpu_type: str
    n_nodes: int | None
    cpus: int | None
    mem_req_b: int | None
    time_limit_s: int | None
    state: str
    ended: int
    ran_s: float
    total_cpu_s: float | None
    gpu_mem_b: int | None
    gpu_total_b: int | None
    busy: float | None
    sm_share: float | None
    dram_share: float | None
    power_ratio: float | None
    host_mem_b: int | None  # on the node with the most
    by_jobstats: bool  # whether its GPUs' figures are those of jobstats: no agent reported
    whole_node: bool

    @property
    def key(self) -> RunKey:
        """The run's key."""
        return RunKey(self.cluster, self.job_id, self.run_start)

    @property
    def activity(self) -> GpuActivity | None:
        """How busy its busiest GPU was."""
        width = self.power_ratio if self.sm_share is None else self.sm_share
        if self.busy is None:
            return None
        return GpuActivity(self.busy, 1.0 if width is None else min(width, 1.0), self.dram_share)

    @property
    def completed(self) -> bool:
        """Whether the run ended by itself."""
        return self.state == COMPLETED

    def peak(self, used: float, given: float) -> Peak:
        """Return what it used of a resource, at least all that it was given where the lack of it ended the run."""
        return Peak(used if self.completed else max(used, given), given, self.submit, self.ended)


def gpu_memory(run: SizedRun) -> Peak | None:
    """Return the peak of the memory of its fullest GPU, in bytes."""
    if run.gpu_mem_b is None or not run.gpu_total_b:
        return None
    return run.peak(run.gpu_mem_b, run.gpu_total_b)


def host_memory(run: SizedRun) -> Peak | None:
    """Return the peak of host memory on its only node, in bytes, as the agent saw it in the job's cgroup."""
    if (run.host_mem_b is None and run.completed) or not run.mem_req_b or run.n_nodes != 1:
        return None
    return run.peak(run.host_mem_b or 0, run.mem_req_b)


def cpus(run: SizedRun) -> Peak | None:
    """Return how many CPUs it kept busy in the mean of its run."""
    if run.total_cpu_s is None or not run.cpus or run.n_nodes != 1:
        return None
    return run.peak(run.total_cpu_s / run.ran_s, run.cpus)


def run_time(run: SizedRun) -> Peak | None:
    """Return its run time and its limit, in seconds."""
    return run.peak(run.ran_s, run.time_limit_s) if run.time_limit_s else None


RESOURCES: Final[Mapping[str, Callable[[SizedRun], Peak | None]]] = {
    "gpu_memory": gpu_memory,
    "memory": host_memory,
    "cpus": cpus,
    "time": run_time,
}
_ENDS: Final = {"time": "TIMEOUT", "memory": "OUT_OF_MEMORY"}
"""The state of runs that the lack of a resource ended: they needed more of it than they were given."""


@dataclass(frozen=True)
class SuchJobs:
    """Runs of such jobs in order of their end."""

    key: GroupKey
    runs: Sequence[SizedRun]

    @cached_property
    def newest(self) -> JobRecord:
        """The request of the newest run."""
        run = self.runs[-1]
        return JobRecord(start=run.run_start, **{name: getattr(run, name) for name in _JOB})

    @cached_property
    def printed(self) -> dict[tuple[str, int], str]:
        """The ids that Slurm prints, by cluster and raw id."""
        return {(run.cluster, run.job_id): run.printed_id for run in self.runs}

    @property
    def whole_node(self) -> bool:
        """Whether the newest run's partition allocates entire nodes."""
        return self.runs[-1].whole_node

    @cached_property
    def completed(self) -> list[SizedRun]:
        """The runs that completed."""
        return [run for run in self.runs if run.completed]

    def peaks(self, resource: str) -> list[Peak]:
        """Return the known peaks of a resource (a key of RESOURCES) of the runs that tell what such jobs need."""
        peak_of, state = RESOURCES[resource], _ENDS.get(resource)
        telling = (run for run in self.runs if run.state in {COMPLETED, state})
        return [peak for run in telling if (peak := peak_of(run)) is not None]


@dataclass(frozen=True, slots=True)
class GpuWait:
    """How long jobs with one number of GPUs of one type waited, in seconds, and where they ran."""

    jobs: int
    p50_s: float
    p90_s: float
    most_in: str
    partitions: Sequence[str]

    def shorter_than(self, other: "GpuWait") -> bool:
        """Return whether jobs waited less: shorter at the median or the 90th percentile, and longer at neither."""
        mine, theirs = (self.p50_s, self.p90_s), (other.p50_s, other.p90_s)
        return mine != theirs and all(a <= b for a, b in zip(mine, theirs, strict=True))


@dataclass(frozen=True, slots=True)
class SizedSite:
    """What one cluster offers, from its own history: GPU sizes, waits by type and number of GPUs, growths."""

    sizes: Mapping[str, GpuSize] = field(default_factory=dict)
    waits: Mapping[tuple[str, int], GpuWait] = field(default_factory=dict)
    growths: Mapping[str, Growths] = field(default_factory=dict)

    def need(self, jobs: SuchJobs, resource: str) -> Need | None:
        """Return the need of the next run of such jobs; None where too few runs tell."""
        growths = self.growths.get(resource)
        return None if growths is None else need_of(jobs.peaks(resource), growths)


def grouped(runs: Iterable[SizedRun]) -> list[SuchJobs]:
    """Return the runs by such jobs."""
    found: dict[GroupKey, list[SizedRun]] = {}
    for run in runs:
        key = (run.cluster, run.user, normal_name(run.name), run.gpus, run.gpu_type)
        found.setdefault(key, []).append(run)
    return [SuchJobs(key, theirs) for key, theirs in found.items()]


def growths_of(jobs: Iterable[SuchJobs]) -> dict[str, Growths]:
    """Return the growths of each resource over all such jobs of a cluster."""
    known = list(jobs)
    return {resource: Growths.of(each.peaks(resource) for each in known) for resource in RESOURCES}
