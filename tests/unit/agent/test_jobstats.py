"""jobstats' names: what its boards and its command ask for, and no uid without a token."""

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest
from tests.unit.agent.fakes import START_US, a_gpu

from gpuwaste.agent.jobstats_metrics import JobstatsCollector, Owners
from gpuwaste.agent.observation import Observation, make_samples
from gpuwaste.agent.readings import GpuAllocation, GpuReading, HostUse, JobMap
from gpuwaste.agent.snapshot import SnapshotView
from gpuwaste.ledger.gpu_sample import Confidence, UnknownReason

GPUS = (a_gpu(0), a_gpu(1), a_gpu(2, instance="1/0", parent_uuid="GPU-9"), a_gpu(3))
READINGS = {
    "GPU-0": GpuReading("GPU-0", util_pct=25.0, mem_used_b=7, power_mw=1500),
    "GPU-1": GpuReading("GPU-1", util_pct=0.0),
    "GPU-2": GpuReading("GPU-2", mem_used_b=5, reason=UnknownReason.MIG),
    "GPU-3": GpuReading("GPU-3", util_pct=9.0),
}
HOLDINGS = (
    GpuAllocation(7, "GPU-0", 0, confidence=Confidence.CONFIRMED),
    GpuAllocation(8, "GPU-1", 0, confidence=Confidence.CONFLICT, reason=UnknownReason.CONFLICT),
    GpuAllocation(9, "GPU-3", 0, share=0.5),
    GpuAllocation(10, "GPU-3", 0, share=0.5),
)


def an_observation() -> Observation:
    host = {7: HostUse(pids=frozenset({1, 2})), 8: HostUse()}
    seen = Observation(START_US, 0, GPUS, READINGS, jobs=JobMap(HOLDINGS), host=host)
    return replace(seen, samples=tuple(make_samples(seen)))


def page(view: SnapshotView, owners: Owners | None = None) -> dict[str, float]:
    """Return what is served: name with labels -> value."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(JobstatsCollector(lambda: view, None if owners is None else owners.uid_of))
    lines = [line.rpartition(" ") for line in generate_latest(registry).decode().splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in lines}


def labels(gpu: int, job: str = "", user: str = "", instance: str = "", minor: str | None = None) -> str:
    name = a_gpu(gpu).name
    minor = str(a_gpu(gpu).minor) if minor is None else minor
    return (
        f'{{GPU_I_ID="{instance}",jobid="{job}",minor_number="{minor}",name="{name}",ordinal="{gpu}",'
        f'userid="{user}",uuid="GPU-{gpu}"}}'
    )


def test_every_value_has_the_labels_by_which_jobstats_joins() -> None:
    """Duty cycle, memory and power stand under exactly the labels of the series with the job's id; units are theirs."""
    found = page(SnapshotView(an_observation()))
    own = labels(0, "7")
    assert found["nvidia_gpu_jobId" + own] == 7
    assert found["nvidia_gpu_duty_cycle" + own] == 25
    assert found["nvidia_gpu_memory_used_bytes" + own] == 7
    assert found["nvidia_gpu_power_usage_milliwatts" + own] == 1500
    assert found["nvidia_gpu_memory_used_bytes" + labels(2, instance="1", minor="")] == 5
    assert "nvidia_gpu_duty_cycle" + labels(2, instance="1", minor="") not in found
    assert found["nvidia_gpu_num_devices"] == 3


def test_an_instance_has_the_minor_of_its_gpu() -> None:
    """minor_number of a MIG instance is /dev/nvidiaN's, not its capability device's; "" where its GPU is not listed."""
    parent, instance = a_gpu(2), replace(a_gpu(5), minor=21, index=2, instance="1/0", parent_uuid="GPU-2")
    for gpus, minor in (((parent, instance), "12"), ((instance,), "")):
        readings = {gpu.uuid: GpuReading(gpu.uuid, mem_used_b=5, reason=UnknownReason.MIG) for gpu in gpus}
        seen = Observation(START_US, 0, gpus, readings)
        found = page(SnapshotView(replace(seen, samples=tuple(make_samples(seen)))))
        (own,) = [name for name in found if name.startswith("nvidia_gpu_memory_used_bytes{") and "GPU-5" in name]
        assert f'minor_number="{minor}"' in own


def test_a_doubtful_or_shared_gpu_has_no_job() -> None:
    """Where sources disagree, or several jobs share the GPU, its values stand without any job."""
    found = page(SnapshotView(an_observation()))
    assert found["nvidia_gpu_duty_cycle" + labels(1)] == 0
    assert found["nvidia_gpu_duty_cycle" + labels(3)] == 9
    assert [name for name in found if name.startswith("nvidia_gpu_jobId")] == ["nvidia_gpu_jobId" + labels(0, "7")]


def test_the_uid_is_told_only_where_owners_are_asked_for() -> None:
    """With owners, label and nvidia_gpu_jobUid hold the user of the job's processes; root only if there is no other."""
    seen, owners = an_observation(), Owners({1: 0, 2: 1234}.get)
    owners.accept(seen)
    found = page(SnapshotView(seen), owners)
    assert found["nvidia_gpu_jobUid" + labels(0, "7", "1234")] == 1234
    assert found["nvidia_gpu_jobId" + labels(0, "7", "1234")] == 7
    assert not [name for name in page(SnapshotView(seen)) if "1234" in name or "jobUid" in name]


def test_the_owner_of_an_ended_job_is_forgotten() -> None:
    """A job that left the node leaves no uid behind, and one whose processes are gone keeps its own."""
    owners = Owners({1: 0, 2: 1234}.get)
    seen = an_observation()
    owners.accept(seen)
    owners.accept(replace(seen, host={7: HostUse()}))
    assert owners.uid_of(7) == 1234
    owners.accept(replace(seen, host={}))
    assert owners.uid_of(7) is None


def test_before_the_first_sample_there_is_nothing() -> None:
    """An agent that has read nothing tells nothing under these names."""
    assert page(SnapshotView()) == {}
