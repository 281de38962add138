"""What AMD's libraries answer, held against the simulated ones and, where a machine has AMD GPUs, the real ones.

Each test of the first part runs on whichever libraries GPUWASTE_AMD_CONTRACT names; its last one runs them all again on
the real ones. The second part holds our layouts, and the simulated library, against the vendor's own Python package.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import _amdsmi, _rocm_smi
from gpuwaste.agent.collectors._amd_library import AmdDevice, AmdLibrary, ProcessInfo
from gpuwaste.testing.patience import patient
from gpuwaste.testing.sim_build import build_rocm_smi, library_env, preload_vendor
from gpuwaste.testing.simnvml import SimNode, build_native, make_amd_gpus

REAL = os.environ.get("GPUWASTE_AMD_CONTRACT") == "real"
FINDERS = {"amdsmi": _amdsmi.find, "rocm_smi": _rocm_smi.find}


@pytest.fixture(params=sorted(FINDERS))
def library(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AmdLibrary]:
    """Open the library under test, with GPUs behind it."""
    if not REAL:
        build = build_native() if request.param == "amdsmi" else build_rocm_smi()
        if build is None:
            pytest.skip("no rocm_smi.h on this machine")
        node = SimNode.create(tmp_path / "node", make_amd_gpus([3, 1, 0]))
        monkeypatch.setenv("GPUWASTE_SIM_DIR", str(node.directory))
        preload_vendor(build, request.param)
    found: AmdLibrary | None = FINDERS[request.param]()
    if found is None:
        pytest.skip(f"no real AMD GPU on this machine: no {request.param}")
    found.open()
    yield found
    found.close()


@pytest.fixture
def devices(library: AmdLibrary) -> list[AmdDevice]:
    """List the devices."""
    return library.devices()


def test_each_device_is_another_one(devices: list[AmdDevice]) -> None:
    """An address and a partition, and a render node, mean one device; the unique id is the GPU's."""
    assert devices
    assert len({(device.pci, device.partition) for device in devices}) == len(devices)
    assert len({device.render for device in devices}) == len(devices)
    by_gpu = {device.pci: device.unique_id for device in devices}
    assert len(set(by_gpu.values())) == len(by_gpu)
    assert all(re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}", device.pci) for device in devices)
    assert all(device.render is None or device.render >= 128 for device in devices)


def test_values_are_plausible(library: AmdLibrary, devices: list[AmdDevice]) -> None:
    """A percentage, memory in use below the total, power below 1.3 times the limit, a mode that AMD names."""
    for device in (device for device in devices if not device.partition):
        percent = library.busy_pct(device, partition=False)
        assert percent is not None
        assert 0 <= percent <= 100
        used, power = library.mem_used_b(device), library.power_mw(device)
        assert used is not None
        assert device.mem_total_b is not None
        assert 0 <= used <= device.mem_total_b
        assert power is not None
        assert 0 < power <= 1.3 * (device.power_limit_mw or 10_000_000)
        assert library.mode(device) in {"", "SPX", "DPX", "TPX", "QPX", "CPX"}


def test_energy_grows(library: AmdLibrary, devices: list[AmdDevice]) -> None:
    """The counter, in millijoules, grows as a GPU draws power."""
    before, deadline = library.energy_mj(devices[0]), time.monotonic() + 5
    assert before is not None
    while library.energy_mj(devices[0]) == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (library.energy_mj(devices[0]) or 0) > before


def test_processes_are_listed_by_device(library: AmdLibrary, devices: list[AmdDevice]) -> None:
    """Every device has an entry; a pid is a process of this host."""
    found = library.processes()
    assert found is not None
    assert found.keys() >= {device.index for device in devices}
    assert all(Path(f"/proc/{pid}").exists() for pids in found.values() for pid in pids)


@pytest.mark.skipif(REAL, reason="this is the run on the real AMD libraries")
def test_the_contract_holds_on_real_amd_libraries() -> None:
    """The same tests pass on the machine's own libraries, where it has one with a GPU behind it."""
    probe = (
        "from gpuwaste.agent.collectors.amd import AmdCollector; from pathlib import Path;"
        "print(len(AmdCollector(Path('/sys')).scan().gpus))"
    )
    environment = {k: v for k, v in os.environ.items() if k not in {"LD_LIBRARY_PATH", "GPUWASTE_SIM_DIR"}}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", probe]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=patient(60))
    if done.returncode:
        pytest.skip(f"no real AMD GPU on this machine: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    environment["GPUWASTE_AMD_CONTRACT"] = "real"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=patient(150))
    assert done.returncode == 0, done.stdout


def test_debians_rocm_smi_without_a_driver_is_one_clear_line() -> None:
    """The real librocm_smi64 of this machine, which has no AMD driver, ends in a CollectorError and not in a crash."""
    if not Path("/usr/lib/librocm_smi64.so.1").exists():
        pytest.skip("no librocm_smi64 on this machine")
    if Path("/sys/module/amdgpu").exists():
        pytest.skip("no real AMD GPU on this machine: this test is of one that has none")
    text = (
        "from gpuwaste.agent.collectors import _rocm_smi; from gpuwaste.agent.collectors.amd import AmdCollector;"
        "from pathlib import Path; from gpuwaste.agent.bounded_calls import CollectorError\n"
        "try: AmdCollector(Path('/sys'), (_rocm_smi.find,)).scan()\n"
        "except CollectorError as error: print(error.reason, error, sep=': ')\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in {"LD_LIBRARY_PATH", "GPUWASTE_SIM_DIR"}}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"driver: (AMD|ROCm SMI): .*driver loaded.*", done.stdout.strip())


# The vendor's wrapper takes every function of the library at its import: those that are not simulated answer nothing.
VENDOR = """
import ctypes, json, sys
real = ctypes.CDLL
class Vendor:
    def __init__(self, name):
        self.library = real(sys.argv[1])
    def __getattr__(self, name):
        return getattr(self.library, name, type("Missing", (), {"__call__": lambda self, *_: 2})())
ctypes.CDLL = lambda name, *more, **options: Vendor(name) if "amd_smi" in str(name) else real(name, *more, **options)
from amdsmi import amdsmi_interface as smi, amdsmi_wrapper as w
"""


def vendor(script: str, node: SimNode | None = None) -> object:
    """Run a script with the vendor's Python package on the simulated library; return what it prints, read as JSON."""
    build = build_native()
    environment = {**os.environ, **library_env(build), **(node.env if node else {})}
    command = [sys.executable, "-c", VENDOR + script, str(build / "libamd_smi.so.26")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=patient(60))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_our_offsets_are_those_of_the_vendors_header() -> None:
    """Where the collector reads in generation 26 is where amdsmi_wrapper.py, made from amdsmi.h, has the fields."""
    found = vendor(
        """
def at(struct, field): return getattr(getattr(w, "struct_" + struct), field).offset
print(json.dumps([at("amdsmi_asic_info_t", "asic_serial"), w.struct_amdsmi_asic_info_t.asic_serial.size,
    at("amdsmi_power_info_t", "socket_power"), at("amdsmi_power_info_t", "current_socket_power"),
    ctypes.sizeof(w.struct_amdsmi_gpu_xcp_metrics_t), at("amdsmi_gpu_metrics_t", "num_partition"),
    at("amdsmi_gpu_metrics_t", "xcp_stats"), at("amdsmi_gpu_xcp_metrics_t", "gfx_busy_inst"),
    at("amdsmi_kfd_info_t", "current_partition_id"), at("amdsmi_enumeration_info_t", "drm_render"),
    at("amdsmi_enumeration_info_t", "drm_card"), ctypes.sizeof(w.struct_amdsmi_process_info_t),
    at("amdsmi_process_info_t", "process_id"), ctypes.sizeof(w.struct_amdsmi_gpu_metrics_t) < 16384,
    w.AMDSMI_INIT_AMD_GPUS, w.AMDSMI_MEM_TYPE_VRAM, w.AMDSMI_STATUS_NOT_FOUND, w.AMDSMI_STATUS_DRIVER_NOT_LOADED]))
"""
    )
    layout = _amdsmi.LAYOUTS[26]
    offsets = [layout.serial, layout.serial_bytes, layout.socket_power, layout.current_power, layout.partition_bytes]
    process = [32, ProcessInfo.process_id.offset]
    assert found == [*offsets, _amdsmi.NUM_PARTITION, _amdsmi.XCP_STATS, 0, 12, 0, 4, *process, True, 2, 0, 31, 34]


def test_the_vendors_package_reads_the_simulated_library(tmp_path: Path) -> None:
    """What amd-smi's own Python reads through the simulated library is what the node was described with."""
    (gpu,) = make_amd_gpus([0])
    found = vendor(
        """
smi.amdsmi_init()
(gpu,) = smi.amdsmi_get_processor_handles()
print(json.dumps([smi.amdsmi_get_gpu_asic_info(gpu)["asic_serial"], smi.amdsmi_get_gpu_asic_info(gpu)["market_name"],
    smi.amdsmi_get_gpu_device_bdf(gpu), smi.amdsmi_get_gpu_enumeration_info(gpu)["drm_render"],
    smi.amdsmi_get_gpu_activity(gpu)["gfx_activity"], smi.amdsmi_get_power_info(gpu)["socket_power"],
    smi.amdsmi_get_gpu_memory_total(gpu, smi.AmdSmiMemoryType.VRAM), smi.amdsmi_get_gpu_compute_partition(gpu),
    smi.amdsmi_get_gpu_kfd_info(gpu)["current_partition_id"], smi.amdsmi_get_energy_count(gpu)["counter_resolution"],
    smi.amdsmi_get_power_cap_info(gpu)["power_cap"]]))
smi.amdsmi_shut_down()
""",
        SimNode.create(tmp_path, [gpu]),
    )
    assert isinstance(found, list)
    assert found[:2] == [f"0x{gpu.unique_id:016X}", gpu.name]
    assert found[2:9] == ["0000:05:00.0", 128, 0, 140, 196608 << 20, "SPX", 0]
    assert found[9] == pytest.approx(15.259, abs=0.001)
    assert found[10] == 750_000_000


@pytest.mark.parametrize(("generation", "major", "named"), [(31, 0, "31.0"), (24, 5, "24.5")])
def test_a_library_that_is_not_known_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generation: int, major: int, named: str
) -> None:
    """A generation whose layouts nobody compared is not read: the line names it."""
    node = SimNode.create(tmp_path, [])
    node.set_gpus(make_amd_gpus([0]), amdsmi=generation, amdsmi_major=major)
    monkeypatch.setenv("GPUWASTE_SIM_DIR", str(node.directory))
    preload_vendor(build_native(), "amdsmi")
    library = _amdsmi.find()
    assert library is not None
    library.open()
    with pytest.raises(CollectorError, match=f"libamd_smi {named} is not known here"):
        library.devices()
    library.close()
