"""What NVML answers, held against the simulated library and, where a machine has one, against the real one.

Each test runs on whichever library GPUWASTE_NVML_CONTRACT names; the last one runs them all again on the real one.
"""

import ctypes
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvml
import pytest

from gpuwaste.testing.patience import patient
from gpuwaste.testing.simnvml import SimNode, build_native, make_gpus, preload

REAL = os.environ.get("GPUWASTE_NVML_CONTRACT") == "real"
PROBE = "import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetCount(), n.nvmlSystemGetDriverVersion())"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pynvml find the library under test, with GPUs behind it, not yet initialised."""
    if not REAL:
        node = SimNode.create(tmp_path / "node", make_gpus([3, 1, 0, 2]))
        monkeypatch.setenv("GPUWASTE_SIM_DIR", str(node.directory))
        preload(build_native())


@pytest.fixture
def devices(library: None) -> Iterator[list[Any]]:
    """Initialise NVML and hand out a handle of each GPU in NVML's order."""
    pynvml.nvmlInit()
    yield [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    pynvml.nvmlShutdown()


def code_of(name: str, *arguments: Any) -> int:
    """Call the C function past pynvml's conveniences and return its code."""
    return int(pynvml._nvmlGetFunctionPointer(name)(*arguments))


def error_of(function: Any, *arguments: Any) -> int:
    """Call a pynvml function that must fail and return the code that it raised."""
    with pytest.raises(pynvml.NVMLError) as caught:
        function(*arguments)
    return int(caught.value.value)


def whole(devices: list[Any]) -> list[Any]:
    """GPUs that have a duty cycle: those that are not in MIG mode."""

    def mig(device: Any) -> bool:
        try:
            return bool(pynvml.nvmlDeviceGetMigMode(device)[0])
        except pynvml.NVMLError_NotSupported:
            return False

    return [d for d in devices if not mig(d)]


def test_initialisation_is_counted(library: None) -> None:
    """NVML stays open until it was shut down as often as it was initialised, and says so afterwards."""
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() >= 1
    pynvml.nvmlShutdown()
    assert error_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    assert error_of(pynvml.nvmlShutdown) == pynvml.NVML_ERROR_UNINITIALIZED


def test_count_and_index_agree(devices: list[Any]) -> None:
    """Every index below the count has a handle with that index, and the next one is an invalid argument."""
    assert [pynvml.nvmlDeviceGetIndex(d) for d in devices] == list(range(len(devices)))
    assert error_of(pynvml.nvmlDeviceGetHandleByIndex, len(devices)) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_a_gpu_is_found_by_each_of_its_names(devices: list[Any]) -> None:
    """UUID and PCI address lead back to the same GPU, and the index follows the PCI address."""
    addresses = []
    for device in devices:
        uuid = pynvml.nvmlDeviceGetUUID(device)
        pci = pynvml.nvmlDeviceGetPciInfo(device)
        addresses.append((pci.domain, pci.bus, pci.device))
        assert re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid)
        assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == uuid
        assert pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByPciBusId(pci.busId)) == uuid
        assert pci.busId.upper() == f"{pci.domain:08X}:{pci.bus:02X}:{pci.device:02X}.0"
    assert addresses == sorted(addresses)


def test_names_and_numbers_are_what_their_types_say(devices: list[Any]) -> None:
    """Minor numbers are distinct, names are text, and versions start with a number."""
    minors = [pynvml.nvmlDeviceGetMinorNumber(d) for d in devices]
    assert len(set(minors)) == len(devices)
    assert all(pynvml.nvmlDeviceGetName(d) for d in devices)
    assert re.match(r"\d+\.\d+", pynvml.nvmlSystemGetDriverVersion())
    assert re.match(r"\d+\.\d+", pynvml.nvmlSystemGetNVMLVersion())
    for device in devices:
        assert pynvml.nvmlDeviceGetArchitecture(device) >= pynvml.NVML_DEVICE_ARCH_KEPLER
        assert pynvml.nvmlDeviceGetCudaComputeCapability(device)[0] >= 3
        assert pynvml.nvmlDeviceGetComputeMode(device) in range(4)
        assert pynvml.nvmlDeviceGetPersistenceMode(device) in {0, 1}
        assert pynvml.nvmlDeviceGetPerformanceState(device) in {*range(16), 32}


def test_what_does_not_exist_is_not_found(devices: list[Any]) -> None:
    """A UUID that no GPU has is not found (some drivers: an invalid argument), and neither is a missing function."""
    absent = "GPU-00000000-0000-0000-0000-000000000000"
    wanted = {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT}
    assert error_of(pynvml.nvmlDeviceGetHandleByUUID, absent) in wanted
    assert error_of(pynvml.nvmlDeviceGetHandleByPciBusId, "0000FFFF:FF:1F.0") in wanted
    assert error_of(pynvml._nvmlGetFunctionPointer, "nvmlNoSuchFunction") == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND


def test_bad_arguments_are_refused(devices: list[Any]) -> None:
    """A null pointer is an invalid argument, and a text that does not fit an insufficient size."""
    small = ctypes.create_string_buffer(4)
    assert code_of("nvmlDeviceGetUUID", devices[0], small, 4) == pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    for name in ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPowerUsage"):
        assert code_of(name, devices[0], None) == pynvml.NVML_ERROR_INVALID_ARGUMENT
        assert code_of(name, None, ctypes.create_string_buffer(64)) == pynvml.NVML_ERROR_INVALID_ARGUMENT


def test_utilization_is_a_percentage(devices: list[Any]) -> None:
    """A whole GPU answers two whole numbers from 0 to 100."""
    for device in whole(devices):
        rates = pynvml.nvmlDeviceGetUtilizationRates(device)
        assert rates.gpu in range(101)
        assert rates.memory in range(101)


def test_memory_adds_up_in_both_versions(devices: list[Any]) -> None:
    """Version 1 counts the reserved part as used, version 2 apart; both add up; another version is refused."""
    for device in devices:
        v1 = pynvml.nvmlDeviceGetMemoryInfo(device)
        v2 = pynvml.nvmlDeviceGetMemoryInfo(device, pynvml.nvmlMemory_v2)
        assert v1.total == v1.free + v1.used == v2.total
        assert v2.total == v2.free + v2.used + v2.reserved
        wrong = pynvml.c_nvmlMemory_v2_t(version=3)
        refusals = {pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH, pynvml.NVML_ERROR_INVALID_ARGUMENT}
        assert code_of("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(wrong)) in refusals


def test_power_energy_and_temperature_are_plausible(devices: list[Any]) -> None:
    """Power is below its limit, energy grows as power says, and the chip is warmer than a room."""
    for device in whole(devices):
        limit = pynvml.nvmlDeviceGetEnforcedPowerLimit(device)
        assert 0 < pynvml.nvmlDeviceGetPowerUsage(device) <= 1.3 * limit
        assert limit <= pynvml.nvmlDeviceGetPowerManagementLimit(device)
        assert 10 <= pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU) <= 110
        before, started = pynvml.nvmlDeviceGetTotalEnergyConsumption(device), time.monotonic()
        while pynvml.nvmlDeviceGetTotalEnergyConsumption(device) == before and time.monotonic() < started + 5:
            time.sleep(0.01)
        assert pynvml.nvmlDeviceGetTotalEnergyConsumption(device) > before


def test_samples_are_those_since_the_last_one(devices: list[Any]) -> None:
    """The driver keeps a bounded history; asked from a timestamp it gives what is newer, or NOT_FOUND."""
    device = whole(devices)[0]
    deadline = time.monotonic() + 5
    samples: list[Any] = []
    while len(samples) < 2 and time.monotonic() < deadline:
        try:
            kind, samples = pynvml.nvmlDeviceGetSamples(device, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
        except pynvml.NVMLError_NotFound:
            time.sleep(0.05)
    stamps = [s.timeStamp for s in samples]
    assert kind == pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
    assert 2 <= len(stamps) <= 200
    assert stamps == sorted(set(stamps))
    assert all(s.sampleValue.uiVal in range(101) for s in samples)
    assert abs(stamps[-1] / 1e6 - time.time()) < 60
    try:
        _, newer = pynvml.nvmlDeviceGetSamples(device, pynvml.NVML_GPU_UTILIZATION_SAMPLES, stamps[-2])
        assert min(s.timeStamp for s in newer) >= stamps[-1]
        future = stamps[-1] + 3_600_000_000
        pynvml.nvmlDeviceGetSamples(device, pynvml.NVML_GPU_UTILIZATION_SAMPLES, future)
        pytest.fail("samples from the future")
    except pynvml.NVMLError_NotFound:
        pass


def test_process_lists_have_processes(devices: list[Any]) -> None:
    """Each listed process has a pid, and a whole GPU's has no instance."""
    for device in whole(devices):
        for process in pynvml.nvmlDeviceGetComputeRunningProcesses_v3(device):
            assert process.pid > 0
            assert process.gpuInstanceId == 0xFFFFFFFF
        assert isinstance(pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3(device), list)
        assert isinstance(pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3(device), list)


def test_utilization_of_processes_is_of_the_past(devices: list[Any]) -> None:
    """Nothing is newer than an hour from now; a GPU with MIG has no such samples."""
    allowed = {pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED}
    for device in whole(devices):
        future = int((time.time() + 3600) * 1_000_000)
        assert error_of(pynvml.nvmlDeviceGetProcessUtilization, device, future) in allowed


def test_a_whole_gpu_is_no_mig_device(devices: list[Any]) -> None:
    """A GPU handle is no MIG handle and has no instance ids; without MIG it has no MIG devices."""
    refusals = {pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_SUPPORTED}
    for device in whole(devices):
        assert not pynvml.nvmlDeviceIsMigDeviceHandle(device)
        assert error_of(pynvml.nvmlDeviceGetGpuInstanceId, device) in refusals
        assert error_of(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, device) in refusals
        assert error_of(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, device, 0) in {
            *refusals,
            pynvml.NVML_ERROR_NOT_FOUND,
        }


def test_gpm_says_whether_it_is_there(devices: list[Any]) -> None:
    """GPM is supported from Hopper on, and a sample of an older GPU is not."""
    for device in whole(devices):
        supported = pynvml.nvmlGpmQueryDeviceSupport(device).isSupportedDevice
        hopper = pynvml.nvmlDeviceGetArchitecture(device) >= pynvml.NVML_DEVICE_ARCH_HOPPER
        assert bool(supported) == hopper
        sample = pynvml.nvmlGpmSampleAlloc()
        if not supported:
            assert error_of(pynvml.nvmlGpmSampleGet, device, sample) == pynvml.NVML_ERROR_NOT_SUPPORTED
        pynvml.nvmlGpmSampleFree(sample)


def test_cpus_and_clocks_of_a_gpu_are_plausible(devices: list[Any]) -> None:
    """Its CPUs are CPUs of this host; its clocks are listed from the highest down. slurmd asks for both."""
    for device in devices:
        words = pynvml.nvmlDeviceGetCpuAffinity(device, 32)
        near = {at * 64 + bit for at, word in enumerate(words) for bit in range(64) if word >> bit & 1}
        assert near
        assert max(near) < os.sysconf("SC_NPROCESSORS_CONF")
        memory = pynvml.nvmlDeviceGetSupportedMemoryClocks(device)
        graphics = pynvml.nvmlDeviceGetSupportedGraphicsClocks(device, memory[0])
        for clocks in (memory, graphics):
            assert clocks == sorted(set(clocks), reverse=True)
            assert clocks


def test_links_lead_to_devices_on_the_bus(devices: list[Any]) -> None:
    """An active link names the PCI address of its other end, which is not its own; past the last there are none."""
    for device in devices:
        own = pynvml.nvmlDeviceGetPciInfo(device).busId
        for link in range(pynvml.NVML_NVLINK_MAX_LINKS):
            try:
                active = pynvml.nvmlDeviceGetNvLinkState(device, link)
            except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument):
                break
            assert active in {0, 1}
            if active:
                other = pynvml.nvmlDeviceGetNvLinkRemotePciInfo(device, link).busId
                assert re.fullmatch(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d", other)
                assert other != own
        error_of(pynvml.nvmlDeviceGetNvLinkState, device, pynvml.NVML_NVLINK_MAX_LINKS)


def test_a_quiet_event_set_times_out(devices: list[Any]) -> None:
    """Waiting for an Xid error that does not come ends with a timeout."""
    events = pynvml.nvmlEventSetCreate()
    pynvml.nvmlDeviceRegisterEvents(devices[0], pynvml.nvmlEventTypeXidCriticalError, events)
    assert error_of(pynvml.nvmlEventSetWait_v2, events, 1) == pynvml.NVML_ERROR_TIMEOUT
    pynvml.nvmlEventSetFree(events)


@pytest.mark.skipif(REAL, reason="this is the run on the real NVML")
def test_the_contract_holds_on_a_real_nvml() -> None:
    """The same tests pass on the machine's own NVML, where it has one with a GPU behind it."""
    environment = {k: v for k, v in os.environ.items() if k not in {"LD_LIBRARY_PATH", "GPUWASTE_SIM_DIR"}}
    probe = subprocess.run(
        [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False, timeout=patient(60)
    )
    if probe.returncode or probe.stdout.startswith("0 "):
        reason = (probe.stderr.strip().splitlines() or ["no GPU"])[-1]
        pytest.skip(f"no real NVML on this machine: {reason}")
    environment["GPUWASTE_NVML_CONTRACT"] = "real"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=patient(150))
    assert done.returncode == 0, done.stdout
