"""What Level Zero answers, held against the simulated library and, where a machine has Intel GPUs, the real one.

Each test of the first part runs on the library that GPUWASTE_INTEL_CONTRACT names; its last one runs them all again on
the real one. The second part holds our structs against the vendor's header.
"""

import ctypes
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.agent.collectors import _level_zero
from gpuwaste.agent.collectors import _level_zero_abi as abi
from gpuwaste.agent.collectors._level_zero import LevelZero, ZeDevice
from gpuwaste.testing.patience import patient
from gpuwaste.testing.sim_build import build_level_zero, preload_vendor
from gpuwaste.testing.simnvml import SimNode, make_intel_gpus

REAL = os.environ.get("GPUWASTE_INTEL_CONTRACT") == "real"
HEADER = Path("/usr/include/level_zero/zes_api.h")
DEBIANS_LOADER = Path("/usr/lib/x86_64-linux-gnu/libze_loader.so.1")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> SimNode:
    """Make one node for all tests of this process: Level Zero is opened once in it."""
    return SimNode.create(tmp_path_factory.mktemp("ze"), make_intel_gpus([3, 1, 0]))


@pytest.fixture
def library(node: SimNode, monkeypatch: pytest.MonkeyPatch) -> LevelZero:
    """Open the library under test, with GPUs behind it."""
    if not REAL:
        build = build_level_zero()
        if build is None:
            pytest.skip("no zes_api.h on this machine")
        monkeypatch.setenv("GPUWASTE_SIM_DIR", str(node.directory))
        preload_vendor(build, "level_zero")
    found = _level_zero.find()
    if found is None:
        pytest.skip("no real Intel GPU on this machine: no libze_loader")
    found.open()
    return found


@pytest.fixture
def devices(library: LevelZero) -> list[ZeDevice]:
    """List the GPUs."""
    return library.devices()


def test_each_gpu_is_another_one(devices: list[ZeDevice]) -> None:
    """An address and a UUID mean one GPU, which has a name and tiles."""
    assert devices
    assert len({device.pci for device in devices}) == len(devices)
    assert len({device.uuid for device in devices}) == len(devices)
    assert all(re.fullmatch(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", device.pci) for device in devices)
    assert all(re.fullmatch(r"([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?", device.uuid) for device in devices)
    assert all(device.name and 1 <= device.tiles <= 16 for device in devices)


def test_a_second_opening_lists_the_same_gpus(library: LevelZero, devices: list[ZeDevice]) -> None:
    """What is opened once in a process can be opened again, with the same handles."""
    library.open()
    assert [device.handle.value for device in library.devices()] == [device.handle.value for device in devices]


def test_engines_count_their_time_by_their_own_clock(library: LevelZero, devices: list[ZeDevice]) -> None:
    """Between two readings the clock goes on, and the time of work grows by no more than it."""
    groups = [group for device in devices for group in device.engines]
    assert groups
    assert all(group.tile is None or 0 <= group.tile < 16 for group in groups)
    before = [library.active(group) for group in groups]
    time.sleep(0.05)
    for (busy, stamp), group in zip(before, groups, strict=True):
        busy_now, stamp_now = library.active(group)
        assert stamp_now > stamp
        assert 0 <= busy_now - busy <= 1.05 * (stamp_now - stamp)


def test_memory_is_below_its_size(library: LevelZero, devices: list[ZeDevice]) -> None:
    """Each module of a GPU has a size, and uses no more than that."""
    for device in devices:
        for module in device.memories:
            state = library.memory_b(module)
            assert state is not None
            assert 0 <= state[0] <= state[1]
            assert state[1] > 0


def test_energy_grows_with_plausible_power(library: LevelZero, devices: list[ZeDevice]) -> None:
    """A GPU draws power, in a second less than 1.3 times its limit."""
    device = devices[0]
    assert device.power is not None
    before = library.energy_uj(device.power)
    time.sleep(1)
    after = library.energy_uj(device.power)
    assert before is not None
    assert after is not None
    mw = 1000 * (after[0] - before[0]) / (after[1] - before[1])
    assert 0 < mw <= 1.3 * (device.power_limit_mw or 1_000_000)


def test_processes_are_those_of_this_host(library: LevelZero, devices: list[ZeDevice]) -> None:
    """Who has a GPU open is a process of this host."""
    for device in devices:
        processes = library.processes(device)
        assert processes is not None
        assert all(Path(f"/proc/{process.pid}").exists() for process in processes)


def _real_environment() -> dict[str, str]:
    environment = {k: v for k, v in os.environ.items() if k not in {"LD_LIBRARY_PATH", "GPUWASTE_SIM_DIR"}}
    return {**environment, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.skipif(REAL, reason="this is the run on the real Level Zero")
def test_the_contract_holds_on_the_real_level_zero() -> None:
    """The same tests pass on the machine's own library, where it has one with a GPU behind it."""
    probe = (
        "from gpuwaste.agent.collectors.intel import IntelCollector; from pathlib import Path;"
        "print(len(IntelCollector(Path('/sys'), Path('/proc')).scan().gpus))"
    )
    environment = _real_environment()
    command = [sys.executable, "-c", probe]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=patient(60))
    if done.returncode:
        pytest.skip(f"no real Intel GPU on this machine: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    environment["GPUWASTE_INTEL_CONTRACT"] = "real"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=patient(150))
    assert done.returncode == 0, done.stdout


def test_debians_loader_without_a_driver_is_one_clear_line() -> None:
    """The real loader of this machine ends in a CollectorError and not in a crash, whatever its version."""
    if not DEBIANS_LOADER.exists():
        pytest.skip("no libze_loader on this machine")
    if any(Path("/sys/bus/pci/devices").glob("*/drm/renderD*")):
        pytest.skip("no real Intel GPU on this machine: this test is of one that has none")
    text = (
        "from gpuwaste.agent.collectors import _level_zero; from gpuwaste.agent.bounded_calls import CollectorError\n"
        "try: _level_zero.find().open()\n"
        "except CollectorError as error: print(error.reason, error, sep=': ')\n"
    )
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, env=_real_environment(), capture_output=True, text=True, check=False, timeout=patient(60)
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"driver: Level Zero: (libze_loader has no zesInit|zesInit failed): .*", done.stdout.strip())


# Ours -> the vendor's name, and our fields -> the vendor's; a field "a.b" is one of a struct in a struct.
STRUCTS: dict[type[ctypes.Structure], tuple[str, dict[str, str]]] = {
    abi.DeviceProperties: (
        "zes_device_properties_t",
        {"stype": "stype", "next": "pNext", "tiles": "numSubdevices", "model_name": "modelName", "core": "core"},
    ),
    type(abi.DeviceProperties().core): (
        "ze_device_properties_t",
        {"type": "type", "vendor_id": "vendorId", "uuid": "uuid", "name": "name"},
    ),
    abi.PciProperties: ("zes_pci_properties_t", {"address": "address", "speed": "maxSpeed"}),
    abi.EngineProperties: (
        "zes_engine_properties_t",
        {"type": "type", "on_tile": "onSubdevice", "tile": "subdeviceId"},
    ),
    abi.MemProperties: (
        "zes_mem_properties_t",
        {"on_tile": "onSubdevice", "location": "location", "physical_size": "physicalSize", "channels": "numChannels"},
    ),
    abi.MemState: ("zes_mem_state_t", {"health": "health", "free": "free", "size": "size"}),
    abi.PowerProperties: (
        "zes_power_properties_t",
        {"on_tile": "onSubdevice", "default_limit_mw": "defaultLimit", "max_limit_mw": "maxLimit"},
    ),
    abi.ProcessState: ("zes_process_state_t", {"pid": "processId", "mem_b": "memSize", "engines": "engines"}),
}


def test_our_structs_are_those_of_the_vendors_header(tmp_path: Path) -> None:
    """Sizes, offsets and type numbers are what the compiler makes of zes_api.h."""
    if not HEADER.exists():
        pytest.skip("no zes_api.h on this machine")
    ours: list[Any] = []
    theirs: list[str] = []
    for struct, (name, fields) in STRUCTS.items():
        ours += [ctypes.sizeof(struct), *(getattr(struct, field).offset for field in fields)]
        theirs += [f"sizeof({name})", *(f"offsetof({name}, {field})" for field in fields.values())]
    for counter, value in (("zes_engine_stats_t", "activeTime"), ("zes_power_energy_counter_t", "energy")):
        ours += [ctypes.sizeof(abi.Count), abi.Count.value.offset, abi.Count.stamp_us.offset]
        theirs += [f"sizeof({counter})", f"offsetof({counter}, {value})", f"offsetof({counter}, timestamp)"]
    for kind, stype in (
        (abi.DeviceProperties, "DEVICE_PROPERTIES"),
        (abi.PciProperties, "PCI_PROPERTIES"),
        (abi.EngineProperties, "ENGINE_PROPERTIES"),
        (abi.MemProperties, "MEM_PROPERTIES"),
        (abi.MemState, "MEM_STATE"),
        (abi.PowerProperties, "POWER_PROPERTIES"),
        (abi.ProcessState, "PROCESS_STATE"),
    ):
        ours.append(kind.STYPE)
        theirs.append(f"ZES_STRUCTURE_TYPE_{stype}")
    ours.append(abi.DeviceProperties.new().core.stype)
    theirs.append("ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES")
    prints = "".join(f'    printf("%zu\\n", (size_t)({item}));\n' for item in theirs)
    source = tmp_path / "layout.c"
    source.write_text(
        f"#include <stddef.h>\n#include <stdio.h>\n#include <level_zero/zes_api.h>\nint main(void)\n{{\n{prints}}}\n"
    )
    subprocess.run(["gcc", "-o", str(tmp_path / "layout"), str(source)], check=True)
    found = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout.split()
    assert dict(zip(theirs, map(int, found), strict=True)) == dict(zip(theirs, ours, strict=True))
