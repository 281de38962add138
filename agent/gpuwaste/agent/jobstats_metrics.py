"""The names and labels of jobstats' GPU exporter, so that a site's dashboards for it keep working; off by default.

Every value of a GPU has the job and its owner as labels, as those dashboards and `jobstats` expect. The owner's uid is
empty unless its export is enabled. Values that the agent does not read are not served (docs/how-to/monitoring.md lists
them). A GPU that several jobs share, or whose job is in conflict, has no job here.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gpuwaste.agent.observation import Observation, SinkPart
from gpuwaste.agent.readings import GpuIdentity
from gpuwaste.agent.snapshot import SnapshotView
from gpuwaste.core.parts import Parts
from gpuwaste.ledger.gpu_sample import Confidence, Sample

LABELS: Final = ("ordinal", "minor_number", "uuid", "name", "GPU_I_ID", "jobid", "userid")
_MAX_OWNERS: Final = 4096


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU with its sample and its job; empty texts are "no job" or "not exported"."""

    identity: GpuIdentity
    minor: int | None  # of /dev/nvidiaN: for an instance that of its GPU, as in that exporter
    sample: Sample
    job_id: str
    userid: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of the labels."""
        gpu = self.identity
        minor = "" if self.minor is None else str(self.minor)
        instance = gpu.instance.partition("/")[0]
        return str(gpu.index), minor, gpu.uuid, gpu.name, instance, self.job_id, self.userid


METRICS: Final[tuple[tuple[str, str, Callable[[Gpu], float | None]], ...]] = (
    (
        "nvidia_gpu_duty_cycle",
        "Share of the time in which a kernel ran on the GPU, percent.",
        lambda g: g.sample.util_pct,
    ),
    ("nvidia_gpu_memory_total_bytes", "GPU memory.", lambda g: g.sample.mem_total_b),
    ("nvidia_gpu_memory_used_bytes", "GPU memory in use.", lambda g: g.sample.mem_used_b),
    ("nvidia_gpu_power_usage_milliwatts", "Power that the GPU draws.", lambda g: g.sample.power_mw),
    ("nvidia_gpu_jobId", "Job that holds the GPU.", lambda g: float(g.job_id) if g.job_id else None),
    ("nvidia_gpu_jobUid", "Uid of that job's owner.", lambda g: float(g.userid) if g.userid else None),
)
NUM_DEVICES: Final = ("nvidia_gpu_num_devices", "GPUs of the node.")


class Owners(SinkPart):
    """A sink that remembers the owner of each job: the user of its processes, root only if there is no other."""

    name = "owners"

    def __init__(self, owner_of: Callable[[int], int | None] | None = None) -> None:
        self._owner_of = owner_of or _owner
        self._known: dict[int, int] = {}  # replaced, never changed: the exporter's threads read it

    @classmethod
    def part_of(cls, _parts: Parts) -> Self:
        """Return the part of an agent."""
        return cls()

    def accept(self, seen: Observation) -> None:
        """Check the processes of each job of this observation whose owner is unknown."""
        known = {job: uid for job, uid in self._known.items() if job in seen.host}
        for job, use in list(seen.host.items())[:_MAX_OWNERS]:
            if not known.get(job):
                uids = {uid for pid in use.pids if (uid := self._owner_of(pid)) is not None}
                if uids:
                    known[job] = max(uids)
        self._known = known

    def uid_of(self, job_id: int) -> int | None:
        """Return the owner's uid, None if unknown."""
        return self._known.get(job_id)


class JobstatsCollector(Collector):
    """Renders the table above from the last observation; `uid_of` None: uids are not exported."""

    def __init__(self, view: Callable[[], SnapshotView], uid_of: Callable[[int], int | None] | None = None) -> None:
        self._view = view
        self._uid_of = uid_of

    def collect(self) -> Iterator[Metric]:
        """Yield every metric that has a value."""
        seen = self._view().seen
        if seen is None:
            return
        gpus = list(self._gpus(seen))
        yield GaugeMetricFamily(*NUM_DEVICES, sum(not gpu.parent_uuid for gpu in seen.gpus))
        for name, text, value in METRICS:
            family = GaugeMetricFamily(name, text, labels=LABELS)
            for gpu in gpus:
                found = value(gpu)
                if found is not None:
                    family.add_metric(gpu.labels, found)
            if family.samples:
                yield family

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering must not read."""
        yield from ()

    def _gpus(self, seen: Observation) -> Iterator[Gpu]:
        samples: dict[str, list[Sample]] = {}
        for sample in seen.samples:
            samples.setdefault(sample.gpu_uuid, []).append(sample)
        minors = {gpu.uuid: gpu.minor for gpu in seen.gpus}
        for identity in seen.gpus:
            found = samples.get(identity.uuid, [])
            if not found:
                continue
            job = found[0].job_id if len(found) == 1 and found[0].confidence is not Confidence.CONFLICT else None
            uid = self._uid_of(job) if job is not None and self._uid_of is not None else None
            minor = minors.get(identity.parent_uuid or identity.uuid)
            yield Gpu(identity, minor, found[0], "" if job is None else str(job), "" if uid is None else str(uid))


def _owner(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116 once per process of a job
    except OSError:
        return None
