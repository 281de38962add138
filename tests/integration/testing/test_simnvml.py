"""The simulated node: what load programs do is what NVML shows, and faults strike where they are injected."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pynvml
import pytest

from gpuwaste.testing.patience import patient
from gpuwaste.testing.simnvml import (
    Arch,
    MigInstance,
    NvmlFault,
    SimGpu,
    SimNode,
    build_native,
    library_env,
    make_gpus,
    oracle_seconds,
    preload,
    read_oracle,
)

NO_INSTANCE = 0xFFFFFFFF
XID_FELL_OFF = 79


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    """Poll a condition until it holds; fail when it does not in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.02)
    raise AssertionError("the condition did not come about in time")


@dataclass
class Bench:
    """One simulated node with NVML open in this process, and the load programs that a test started."""

    node: SimNode
    gpus: list[SimGpu]
    build: Path
    logs: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def load(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """Start a load program on this node."""
        env = {"PATH": os.environ["PATH"], **self.node.env, "GPUWASTE_SIM_LOG": str(self.logs), **environment}
        command = [str(self.build / "gpuwaste-load"), *arguments]
        process = subprocess.Popen(command, env=env, text=True, stderr=subprocess.PIPE)
        self.started.append(process)
        return process

    def use(self, gpus: list[SimGpu]) -> None:
        """Give the node other GPUs."""
        self.gpus = gpus
        self.node.set_gpus(gpus)

    def handle(self, gpu: SimGpu) -> Any:
        """Return NVML's handle of a GPU."""
        return pynvml.nvmlDeviceGetHandleByUUID(gpu.uuid)

    def util(self, gpu: SimGpu) -> int:
        """Return the duty cycle of the last sixth of a second."""
        return int(pynvml.nvmlDeviceGetUtilizationRates(self.handle(gpu)).gpu)

    def pids(self, gpu: SimGpu) -> list[int]:
        """Return the processes that NVML lists on a GPU."""
        return [p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(self.handle(gpu))]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Make a node of four GPUs whose minors are 3, 1, 0, 2 in NVML's order."""
    build = build_native()
    gpus = make_gpus([3, 1, 0, 2])
    node = SimNode.create(tmp_path / "node", gpus)
    logs = tmp_path / "logs"
    logs.mkdir()
    monkeypatch.setenv("GPUWASTE_SIM_DIR", str(node.directory))
    preload(build)
    pynvml.nvmlInit()
    bench = Bench(node, gpus, build, logs)
    yield bench
    for process in bench.started:
        process.kill()
        process.communicate()
    pynvml.nvmlShutdown()


def test_a_load_shows_on_the_gpus_that_it_was_given(bench: Bench) -> None:
    """The task prolog's minors decide, not NVML's order; utilization, memory, power and process appear and go."""
    gpu, other = bench.gpus[0], bench.gpus[3]  # minor 3 is NVML index 0
    process = bench.load("--phase", "30:60:2000:250", GPUWASTE_SIM_MINORS="3")
    until(lambda: bench.util(gpu) == 60)
    assert bench.util(other) == 0
    assert bench.pids(gpu) == [process.pid]
    assert bench.pids(other) == []
    memory = pynvml.nvmlDeviceGetMemoryInfo(bench.handle(gpu), pynvml.nvmlMemory_v2)
    assert memory.used == 2000 << 20
    assert pynvml.nvmlDeviceGetPowerUsage(bench.handle(gpu)) == 250_000
    process.terminate()
    assert process.wait() == 0
    until(lambda: bench.util(gpu) == 0)
    assert bench.pids(gpu) == []
    assert [e.event for e in read_oracle(bench.logs)] == ["start", "end"]


def test_without_a_prolog_cuda_positions_count(bench: Bench) -> None:
    """CUDA_VISIBLE_DEVICES holds positions in NVML's order."""
    process = bench.load("--phase", "30:50", CUDA_VISIBLE_DEVICES="2")
    until(lambda: bench.pids(bench.gpus[2]) == [process.pid])


def test_a_gpu_without_a_plan_stays_untouched(bench: Bench) -> None:
    """Plans by position: the GPU with none has no process; a hidden process is used but not listed."""
    plans = ("--per-gpu", "0=30:90;2=30:40", "--no-process-on", "2")
    process = bench.load("--gpus", "3,1,0", *plans)
    first, second, third = bench.gpus[:3]
    until(lambda: (bench.util(first), bench.util(second), bench.util(third)) == (90, 0, 40))
    assert (bench.pids(first), bench.pids(second), bench.pids(third)) == ([process.pid], [], [])


def test_samples_show_a_load_that_came_and_went(bench: Bench) -> None:
    """The kept samples integrate to what the load's log says, though nobody looked while it ran."""
    gpu = bench.gpus[1]
    assert bench.load("--gpus", "1", "--phase", "0.8:50", "--phase", "0.5:100").wait() == 0
    events = read_oracle(bench.logs)
    done_us = events[-1].t_utc * 1e6

    def samples() -> list[Any]:
        _, found = pynvml.nvmlDeviceGetSamples(bench.handle(gpu), pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
        return list(found) if found[-1].timeStamp > done_us else []

    busy = sum(s.sampleValue.uiVal for s in until(samples)) / 100 / 6
    truth = oracle_seconds(events, gpu.uuid, events[0].t_utc, events[-1].t_utc)
    assert truth[50.0] == pytest.approx(0.8, abs=0.01)
    assert busy == pytest.approx(sum(u / 100 * s for u, s in truth.items()), abs=0.02)


def test_a_killed_load_leaves_nothing_behind(bench: Bench) -> None:
    """After kill -9 the process, its memory and its utilization are gone, and the log's last span has no end."""
    gpu = bench.gpus[0]
    process = bench.load("--gpus", "3", "--phase", "60:80:1000")
    until(lambda: bench.util(gpu) == 80)
    process.kill()
    process.wait()
    until(lambda: bench.util(gpu) == 0)
    assert bench.pids(gpu) == []
    assert pynvml.nvmlDeviceGetMemoryInfo(bench.handle(gpu), pynvml.nvmlMemory_v2).used == 0
    start = read_oracle(bench.logs)[0].t_utc
    seconds = oracle_seconds(read_oracle(bench.logs), gpu.uuid, start, start + 10, open_end=start + 4)
    assert seconds == {80.0: pytest.approx(4), 0.0: pytest.approx(6)}


def test_a_stopped_load_idles_and_keeps_its_memory(bench: Bench) -> None:
    """Slurm's suspend: no utilization while stopped, the context stays, and the log tells the pause."""
    gpu = bench.gpus[0]
    process = bench.load("--gpus", "3", "--phase", "60:80:1000")
    until(lambda: bench.util(gpu) == 80)
    process.send_signal(signal.SIGSTOP)
    until(lambda: bench.util(gpu) == 0)
    assert bench.pids(gpu) == [process.pid]
    assert pynvml.nvmlDeviceGetMemoryInfo(bench.handle(gpu), pynvml.nvmlMemory_v2).used == 1000 << 20
    process.send_signal(signal.SIGCONT)
    until(lambda: bench.util(gpu) == 80)
    process.terminate()
    process.wait()
    assert [e.event for e in read_oracle(bench.logs)] == ["start", "suspend", "resume", "end"]


def test_several_loads_share_one_gpu(bench: Bench) -> None:
    """Two processes add up, to at most 100 %, and both are listed."""
    gpu = bench.gpus[3]
    pids = {bench.load("--gpus", "2", "--phase", "30:70").pid for _ in range(2)}
    until(lambda: bench.util(gpu) == 100)
    assert set(bench.pids(gpu)) == pids


def test_many_short_loads_leave_the_ring_whole(bench: Bench) -> None:
    """More changes than the ring holds: no reading fails, and the energy counter never runs backwards."""
    gpu = bench.gpus[0]
    phases = [arg for _ in range(60) for arg in ("--phase", "0.01:100::400")]
    loads = [bench.load("--gpus", "3", *phases) for _ in range(9)]
    seen = [0]
    while any(load.poll() is None for load in loads):
        seen.append(pynvml.nvmlDeviceGetTotalEnergyConsumption(bench.handle(gpu)))
        assert bench.util(gpu) in range(101)
        time.sleep(0.005)
    assert [load.wait() for load in loads] == [0] * 9
    assert seen == sorted(seen)
    assert bench.pids(gpu) == []


def test_energy_integrates_power(bench: Bench) -> None:
    """The counter grows by the load's power times its time, over what idling takes."""
    busy, idle = bench.gpus[0], bench.gpus[1]

    def energy_mj(gpu: SimGpu) -> int:
        return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(bench.handle(gpu)))

    assert bench.load("--gpus", "3", "--phase", "0.5:100::350").wait() == 0
    above_idle_mj = energy_mj(busy) - energy_mj(idle)
    assert above_idle_mj == pytest.approx(0.5 * (350 - 50) * 1000, rel=0.05)


def test_a_lost_gpu_says_so_and_the_others_go_on(bench: Bench) -> None:
    """Each call on the lost GPU answers GPU_IS_LOST until the fault is cleared."""
    lost, good = (bench.handle(g) for g in bench.gpus[:2])
    bench.node.inject(bench.gpus[0], NvmlFault.lost())
    with pytest.raises(pynvml.NVMLError_GpuIsLost):
        pynvml.nvmlDeviceGetUtilizationRates(lost)
    assert pynvml.nvmlDeviceGetUtilizationRates(good).gpu == 0
    assert pynvml.nvmlDeviceGetCount() == 4
    bench.node.clear(bench.gpus[0])
    assert pynvml.nvmlDeviceGetUtilizationRates(lost).gpu == 0


def test_a_gpu_that_is_gone_is_not_counted(bench: Bench) -> None:
    """The next GPUs move up by one index, and the UUID is not found."""
    bench.node.inject(bench.gpus[1], NvmlFault.gone())
    uuids = [pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(3)]
    assert uuids == [g.uuid for g in bench.gpus if g is not bench.gpus[1]]
    assert pynvml.nvmlDeviceGetCount() == 3
    with pytest.raises(pynvml.NVMLError_NotFound):
        bench.handle(bench.gpus[1])


def test_one_function_can_fail_alone(bench: Bench) -> None:
    """NOT_SUPPORTED and any other code strike the named function on the named GPU, whatever its version suffix."""
    gpu, other = bench.gpus[:2]
    bench.node.inject(gpu, NvmlFault.not_supported("nvmlDeviceGetMemoryInfo"))
    bench.node.inject(None, NvmlFault.error("nvmlDeviceGetPowerUsage", pynvml.NVML_ERROR_NO_PERMISSION))
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetMemoryInfo(bench.handle(gpu), pynvml.nvmlMemory_v2)
    with pytest.raises(pynvml.NVMLError_NoPermission):
        pynvml.nvmlDeviceGetPowerUsage(bench.handle(other))
    assert pynvml.nvmlDeviceGetMemoryInfo(bench.handle(other)).total > 0
    assert bench.util(gpu) == 0


def test_slow_calls_sleep(bench: Bench) -> None:
    """A slow function takes its time without burning CPU; so does every call on a node with a latency."""
    bench.node.inject(bench.gpus[0], NvmlFault.slow("nvmlDeviceGetPowerUsage", 100))
    handle = bench.handle(bench.gpus[0])
    wall, cpu = time.monotonic(), time.process_time()
    pynvml.nvmlDeviceGetPowerUsage(handle)
    assert time.monotonic() - wall >= 0.1
    bench.node.set_gpus(bench.gpus, latency_us=3000)
    pynvml.nvmlDeviceGetCount()  # the call that reads the new setting
    wall = time.monotonic()
    for _ in range(10):
        pynvml.nvmlDeviceGetCount()
    assert time.monotonic() - wall >= 0.03
    assert time.process_time() - cpu < 0.1


def test_a_hanging_call_ends_when_its_fault_is_cleared(bench: Bench) -> None:
    """A call that hangs in another process holds only that process."""
    script = "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0); n.nvmlDeviceGetPowerUsage(h)"
    bench.node.inject(bench.gpus[0], NvmlFault.hang("nvmlDeviceGetPowerUsage"))
    environment = {**os.environ, **library_env(bench.build)}
    hanging = subprocess.Popen([sys.executable, "-c", script], env=environment, text=True, stderr=subprocess.PIPE)
    bench.started.append(hanging)
    until(lambda: hanging.pid in bench.node.clients())
    assert bench.util(bench.gpus[0]) == 0
    assert hanging.poll() is None
    bench.node.clear()
    assert hanging.wait(timeout=patient(20)) == 0
    assert hanging.pid not in bench.node.clients()


def test_the_driver_can_go_and_come_back(bench: Bench) -> None:
    """Without a driver nothing answers and NVML does not initialise; after a reset it must be initialised again."""
    handle = bench.handle(bench.gpus[0])
    bench.node.unload_driver()
    with pytest.raises(pynvml.NVMLError_Unknown):
        pynvml.nvmlDeviceGetPowerUsage(handle)
    pynvml.nvmlShutdown()
    with pytest.raises(pynvml.NVMLError_DriverNotLoaded):
        pynvml.nvmlInit()
    bench.node.clear()
    pynvml.nvmlInit()
    bench.node.reset_driver()
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetPowerUsage(handle)
    pynvml.nvmlShutdown()
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetPowerUsage(bench.handle(bench.gpus[0])) == 50_000


def test_open_clients_are_counted(bench: Bench) -> None:
    """A process is a client from its first initialisation to its last shutdown: so long no GPU can be reset."""
    assert bench.node.clients() == [os.getpid()]
    pynvml.nvmlShutdown()
    assert bench.node.clients() == []
    pynvml.nvmlInit()


def test_an_xid_reaches_the_event_set_once(bench: Bench) -> None:
    """Only GPUs that were registered, and only errors after the set was made."""
    bench.node.xid(bench.gpus[0], 13)
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(bench.handle(bench.gpus[0]), pynvml.nvmlEventTypeXidCriticalError, events)
    bench.node.xid(bench.gpus[1], 31)
    bench.node.xid(bench.gpus[0], XID_FELL_OFF)
    event = pynvml.nvmlEventSetWait_v2(events, 2000)
    assert (event.eventType, event.eventData) == (pynvml.nvmlEventTypeXidCriticalError, XID_FELL_OFF)
    assert pynvml.nvmlDeviceGetUUID(event.device) == bench.gpus[0].uuid
    with pytest.raises(pynvml.NVMLError_Timeout):
        pynvml.nvmlEventSetWait_v2(events, 1)
    pynvml.nvmlEventSetFree(events)


def test_a_node_that_does_not_exist_has_no_driver(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML on a machine without a (simulated) driver answers DRIVER_NOT_LOADED."""
    pynvml.nvmlShutdown()
    monkeypatch.setenv("GPUWASTE_SIM_DIR", str(bench.logs / "nowhere"))
    with pytest.raises(pynvml.NVMLError_DriverNotLoaded):
        pynvml.nvmlInit()
    monkeypatch.setenv("GPUWASTE_SIM_DIR", str(bench.node.directory))
    pynvml.nvmlInit()


def mig_gpu(arch: Arch) -> SimGpu:
    """Make one GPU in MIG mode with two instances."""
    plain = make_gpus([1], arch)[0]
    return SimGpu(
        uuid=plain.uuid,
        minor=plain.minor,
        pci_bus_id=plain.pci_bus_id,
        arch=arch,
        mig_enabled=True,
        mig=(MigInstance(gi=1), MigInstance(gi=2, profile="2g.10gb", memory_mib=9856, sm_count=28, slices=2)),
    )


def test_mig_devices_have_handles_and_no_duty_cycle(bench: Bench) -> None:
    """Instances are found by index and UUID and lead to their parent; neither has a utilization in NVML."""
    gpu = mig_gpu(Arch.AMPERE)
    bench.use([gpu])
    parent = bench.handle(gpu)
    assert pynvml.nvmlDeviceGetMigMode(parent) == [1, 1]
    second = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 1)
    assert pynvml.nvmlDeviceGetUUID(second) == gpu.mig[1].uuid
    assert (pynvml.nvmlDeviceGetGpuInstanceId(second), pynvml.nvmlDeviceGetComputeInstanceId(second)) == (2, 0)
    assert pynvml.nvmlDeviceIsMigDeviceHandle(second)
    above = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(second)
    assert pynvml.nvmlDeviceGetUUID(above) == gpu.uuid
    assert pynvml.nvmlDeviceGetName(second).endswith("MIG 2g.10gb")
    assert pynvml.nvmlDeviceGetAttributes(second).multiprocessorCount == 28
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 2)
    for handle in (parent, second):
        with pytest.raises(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceGetUtilizationRates(handle)
        with pytest.raises(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)


def test_a_load_runs_on_a_mig_device(bench: Bench) -> None:
    """Named by its capability file, the instance alone holds the process and its memory."""
    gpu = mig_gpu(Arch.AMPERE)
    bench.use([gpu])
    caps = dict(line.split() for line in bench.node.mig_minors.read_text().splitlines())
    process = bench.load("--gpus", f"cap{caps['gpu1/gi2/ci0/access']}", "--phase", "30:50:3000")
    first, second = (pynvml.nvmlDeviceGetHandleByUUID(m.uuid) for m in gpu.mig)
    until(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(second))
    listed = pynvml.nvmlDeviceGetComputeRunningProcesses(bench.handle(gpu))
    assert [(p.pid, p.gpuInstanceId, p.computeInstanceId) for p in listed] == [(process.pid, 2, 0)]
    assert pynvml.nvmlDeviceGetComputeRunningProcesses(first) == []
    assert pynvml.nvmlDeviceGetMemoryInfo(second).used == 3000 << 20
    assert pynvml.nvmlDeviceGetMemoryInfo(first).used == 0


def test_each_process_has_its_own_utilization(bench: Bench) -> None:
    """Of two loads on a GPU each has its share, once for each cell of the grid; with MIG there is none."""
    gpu = bench.gpus[0]
    shares = {bench.load("--gpus", str(gpu.minor), "--phase", f"30:{share}").pid: share for share in (20, 50)}
    until(lambda: bench.util(gpu) == 70)
    samples = pynvml.nvmlDeviceGetProcessUtilization(bench.handle(gpu), 0)
    assert {sample.pid: sample.smUtil for sample in samples} == shares
    later = samples[0].timeStamp + 3_600_000_000
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetProcessUtilization(bench.handle(gpu), later)
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetProcessUtilization(bench.handle(bench.gpus[1]), 0)
    mig = mig_gpu(Arch.AMPERE)
    bench.use([mig])
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetProcessUtilization(bench.handle(mig), 0)


def gpm(device: Any, instance: int = NO_INSTANCE) -> tuple[float, float]:
    """Return (graphics utilization, SM utilization) in percent over a tenth of a second."""
    wanted = (pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL, pynvml.NVML_GPM_METRIC_SM_UTIL)
    get = pynvml.c_nvmlGpmMetricsGet_t()
    get.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    get.sample1, get.sample2 = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
    for sample in (get.sample1, get.sample2):
        if instance == NO_INSTANCE:
            pynvml.nvmlGpmSampleGet(device, sample)
        else:
            pynvml.nvmlGpmMigSampleGet(device, instance, sample)
        time.sleep(0.1)
    get.numMetrics = len(wanted)
    for i, metric in enumerate(wanted):
        get.metrics[i].metricId = metric
    pynvml.nvmlGpmMetricsGet(get)
    for sample in (get.sample1, get.sample2):
        pynvml.nvmlGpmSampleFree(sample)
    return float(get.metrics[0].value), float(get.metrics[1].value)


def test_gpm_tells_a_busy_looking_hang(bench: Bench) -> None:
    """On Hopper a full duty cycle with next to no busy SM shows as such."""
    gpu = make_gpus([0], Arch.HOPPER)[0]
    bench.use([gpu])
    bench.load("--gpus", "0", "--phase", "30:100:1000:120:0.01")
    until(lambda: bench.util(gpu) == 100)
    assert pynvml.nvmlGpmQueryDeviceSupport(bench.handle(gpu)).isSupportedDevice
    assert list(gpm(bench.handle(gpu))) == pytest.approx([100, 1], abs=0.01)
    assert pynvml.nvmlDeviceGetPowerUsage(bench.handle(gpu)) == 120_000


def test_gpm_reads_one_instance(bench: Bench) -> None:
    """On Hopper an instance has a utilization of its own through GPM."""
    gpu = mig_gpu(Arch.HOPPER)
    bench.use([gpu])
    bench.load("--gpus", gpu.mig[0].uuid, "--phase", "30:40")
    until(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(bench.handle(gpu)))
    assert gpm(bench.handle(gpu), 1)[0] == pytest.approx(40, abs=0.1)
    assert gpm(bench.handle(gpu), 2)[0] == 0


def test_the_log_names_the_job(bench: Bench) -> None:
    """The oracle says which job, restart, step and node used which GPU."""
    slurm = {"SLURM_JOB_ID": "77", "SLURM_RESTART_COUNT": "1", "SLURM_STEP_ID": "0", "SLURMD_NODENAME": "gpu1"}
    assert bench.load("--gpus", "2", "--phase", "0.05:10", **slurm).wait() == 0
    event = read_oracle(bench.logs)[0]
    assert (event.job_id, event.restart, event.step, event.node) == (77, 1, 0, "gpu1")
    assert (event.minor, event.uuid, event.util) == (2, bench.gpus[3].uuid, 10)


def test_a_torn_log_line_is_passed_over(bench: Bench) -> None:
    """A line that a full disk cut short does not hide the others."""
    assert bench.load("--gpus", "2", "--phase", "0.05:10").wait() == 0
    log = next(bench.logs.glob("*.jsonl"))
    whole = len(read_oracle(log))
    log.write_text(log.read_text() + '{"t_utc": 17')
    assert len(read_oracle(log)) == whole


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--gpus", "9", "--phase", "1:1"), "no GPU '9'"),
        (("--gpus", "0", "--phase", "1"), "phase '1' is not SECONDS:UTIL"),
        (("--gpus", "0", "--phase", "1:101"), "'101' is not a number from 0 to 100"),
        (("--phase", "1:50"), "this job was given no GPU"),
        (("--per-gpu", "0"), "each plan is POSITION=PHASE"),
    ],
)
def test_a_wrong_command_line_is_one_line(bench: Bench, arguments: tuple[str, ...], says: str) -> None:
    """The load program says what is wrong and exits with 2."""
    process = bench.load(*arguments)
    _, errors = process.communicate(timeout=patient(20))
    assert process.returncode == 2
    assert errors.startswith("gpuwaste-load: ")
    assert says in errors
    assert errors.count("\n") == 1


def test_uuids_by_minor_are_what_the_driver_was_given(tmp_path: Path) -> None:
    """A test can name the GPU behind each device file of a node that another process made."""
    gpus = make_gpus([3, 0, 1])
    SimNode.create(tmp_path / "sim", gpus)
    assert SimNode(tmp_path / "sim").uuids() == {gpu.minor: gpu.uuid for gpu in gpus}
