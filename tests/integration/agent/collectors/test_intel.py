"""The Intel collector, through the simulated libze_loader in a process of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.agent.collectors.vendor_bench import Bench

from gpuwaste.testing.sim_build import build_level_zero
from gpuwaste.testing.simnvml import NvmlFault, SimGpu, SimNode, make_gpus, make_intel_gpus

PROLOGUE = """
from gpuwaste.agent.collectors import _level_zero
from gpuwaste.agent.collectors.intel import IntelCollector
status = node.directory / "self" / "status"
status.parent.mkdir(exist_ok=True)
def capabilities(*bits): status.write_text(f"Name:\\tagent\\nCapEff:\\t{sum(1 << bit for bit in bits):016x}\\n")
capabilities(38, 19)
collector = IntelCollector(node.sys_root, node.directory)
"""
GROUPS = {"all": 0, "classes": 1, "single": 2, "mean": 3}
UNSUPPORTED, NO_PERMISSION, LOST = 0x78000003, 0x70010000, 0x70000001


@pytest.fixture
def make_bench(request: pytest.FixtureRequest, in_process: Callable[..., str], tmp_path: Path) -> Callable[..., Bench]:
    """Return a function that makes a node of these GPUs, with these groups of engines."""
    build = build_level_zero()
    if build is None:
        pytest.skip("no zes_api.h on this machine")

    def make(gpus: list[SimGpu], groups: str = "all") -> Bench:
        node = SimNode.create(tmp_path, [])
        node.set_gpus(gpus, ze_groups=GROUPS[groups])
        return Bench(node, groups, in_process, build, prologue=PROLOGUE)

    return make


def test_a_gpu_has_intels_uuid_and_its_device_files(make_bench: Callable[..., Bench]) -> None:
    """Name, address, render node and limit are those of the node; NVIDIA's GPUs are none of its business."""
    intel = make_intel_gpus([5, 4])
    bench = make_bench([*intel, *make_gpus([0])])
    lines = bench.script(
        "for g in collector.scan().gpus: print(g.uuid, g.vendor, g.minor, g.pci_bus_id, g.mem_total_b,"
        " g.power_limit_mw, g.name, *(tuple(n) for n in g.device_nodes))"
    )
    assert lines == [
        f"{gpu.uuid} intel {gpu.render} 0000:{gpu.pci_bus_id[9:].lower()} {131072 << 20} 600000 "
        f"Intel(R) Data Center GPU Max 1550 (226, {gpu.render}) (226, {gpu.render - 128})"
        for gpu in intel
    ]


@pytest.mark.parametrize("tiles", [1, 2])
@pytest.mark.parametrize("groups", sorted(GROUPS))
def test_a_reading_says_what_a_load_does(make_bench: Callable[..., Bench], groups: str, tiles: int) -> None:
    """Mean use since the last reading, memory, power and process of the GPU in use, whatever groups the driver has."""
    bench = make_bench(make_intel_gpus([0, 1], tiles=tiles), groups)
    lines = bench.script(
        """
load = use("1", "60:70:2048:400")
print(by_index(collector.scan(), "util_pct"), by_index(collector.scan(), "power_mw") is None)
near = lambda scan: [abs((mw or 0) - w * 1000) < 20_000 for mw, w in zip(by_index(scan, "power_mw"), (120, 400))]
scan = until(lambda s: (by_index(s, "util_pct")[1] or 0) > 69.5 and all(near(s)))
print([round(value) for value in by_index(scan, "util_pct")], by_index(scan, "mem_used_b"))
print(near(scan), by_index(scan, "reason"))
print([pids == {load.pid} for pids in by_index(scan, "pids")])
before = by_index(scan, "energy_mj")
print(all(a > b for a, b in zip(by_index(until(lambda s: by_index(s, "energy_mj") > before), "energy_mj"), before)))
load.kill(); load.wait()
scan = until(lambda s: by_index(s, "util_pct")[1] == 0)
print(by_index(scan, "mem_used_b"), by_index(scan, "pids"))
"""
    )
    assert lines == [
        "[None, None] False",
        f"[0, 70] [0, {2048 << 20}]",
        "[True, True] ['', '']",
        "[False, True]",
        "True",
        "[0, 0] [frozenset(), frozenset()]",
    ]


def test_the_first_reading_has_no_utilization_and_the_second_has(make_bench: Callable[..., Bench]) -> None:
    """Counters need two readings: the time before the second is a gap, not idle, and not half of the tiles."""
    bench = make_bench(make_intel_gpus([0]))
    lines = bench.script(
        "print(by_index(collector.scan(), 'reason')); time.sleep(0.01); print(by_index(collector.scan(), 'util_pct'))"
    )
    assert lines == ["['gap']", "[0.0]"]


def test_one_tile_at_work_is_half_of_the_gpu(make_bench: Callable[..., Bench]) -> None:
    """A job that uses one of two tiles (ZE_AFFINITY_MASK=0.1) leaves half of its GPU idle."""
    bench = make_bench(make_intel_gpus([2]))
    lines = bench.script(
        """
load = use("2/1/0", "60:80:1024:300")
scan = until(lambda s: (by_index(s, "util_pct")[0] or 0) > 39.5)
(pids,) = by_index(scan, "pids")
print(by_index(scan, "mem_used_b")[0] >> 20, round(by_index(scan, "util_pct")[0]), pids == {load.pid})
load.kill()
"""
    )
    assert lines == ["1024 40 True"]


def test_without_capabilities_what_is_hidden_is_absent_and_not_zero(make_bench: Callable[..., Bench]) -> None:
    """Memory "0" without CAP_PERFMON and "no process" without CAP_SYS_PTRACE are unknown; what is seen is taken."""
    bench = make_bench(make_intel_gpus([0, 1]))
    lines = bench.script(
        """
load = use("1", "60:70:2048:400")
until(lambda s: by_index(s, "pids")[1])
for bits in ((), (38,), (21,), (19,)):
    capabilities(*bits)
    scan = collector.scan()
    print([value if value is None else value >> 20 for value in by_index(scan, "mem_used_b")],
        [pids if pids is None else len(pids) for pids in by_index(scan, "pids")])
status.unlink()
print(by_index(collector.scan(), "mem_used_b")[0])
load.kill()
"""
    )
    assert lines == [
        "[None, 2048] [None, 1]",
        "[0, 2048] [None, 1]",
        "[0, 2048] [None, 1]",
        "[None, 2048] [0, 1]",
        "None",
    ]


def test_what_goes_wrong_stays_with_its_field_or_its_gpu(make_bench: Callable[..., Bench]) -> None:
    """No permission for counters, a missing energy counter and a GPU that is lost leave the rest as it is."""
    one, two, three = make_intel_gpus([0, 1, 2])
    bench = make_bench([one, two, three])
    bench.node.inject(one, NvmlFault.error("zesEngineGetActivity", NO_PERMISSION))
    bench.node.inject(two, NvmlFault.error("zesPowerGetEnergyCounter", UNSUPPORTED))
    lines = bench.script(
        f"""
collector.scan()
time.sleep(0.01)
scan = collector.scan()
print(by_index(scan, "util_pct"), by_index(scan, "reason"), [value is None for value in by_index(scan, "energy_mj")])
node.inject({three.uuid!r}, NvmlFault.lost())
print(by_index(collector.scan(), "reason"))
node.clear({three.uuid!r})
node.inject({three.uuid!r}, NvmlFault("gone"))
scan = collector.scan()
print(by_index(scan, "reason"), len(scan.gpus))
node.inject({three.uuid!r}, NvmlFault.error("zesEngineGetActivity", {LOST}))
node.clear({two.uuid!r})
node.inject({two.uuid!r}, NvmlFault.error("zesEngineGetActivity", {LOST}))
print(by_index(collector.scan(), "reason")[1])
"""
    )
    assert lines[0] == "[None, 0.0, 0.0] ['not_supported', '', ''] [False, True, False]"
    assert lines[1] == "['not_supported', '', 'gpu_lost']"
    assert lines[2] == "['not_supported', '', 'gpu_lost'] 3"
    assert lines[3] == "driver"


def test_a_gpu_without_counters_is_unknown_and_can_still_be_lost(make_bench: Callable[..., Bench]) -> None:
    """Without any group of engines, or with a list that cannot be read, the use is unknown, not idle."""
    gpus = make_intel_gpus([0, 1])
    bench = make_bench(gpus)
    bench.node.inject(gpus[0], NvmlFault.error("zesDeviceEnumEngineGroups", UNSUPPORTED))
    bench.node.inject(gpus[1], NvmlFault.error("zesEngineGetProperties", UNSUPPORTED))
    lines = bench.script(
        f"""
collector.scan()
time.sleep(0.01)
print(by_index(collector.scan(), "reason"))
node.inject({gpus[0].uuid!r}, NvmlFault.lost())
print(by_index(collector.scan(), "reason"))
"""
    )
    assert lines == ["['not_supported', 'not_supported']", "['gpu_lost', 'not_supported']"]


def test_processes_that_cannot_be_read_are_not_none(make_bench: Callable[..., Bench]) -> None:
    """A refusal makes the processes unknown, not absent."""
    bench = make_bench(make_intel_gpus([0]))
    bench.node.inject(None, NvmlFault.error("zesDeviceProcessesGetState", NO_PERMISSION))
    assert bench.script("print(by_index(collector.scan(), 'pids'))") == ["[None]"]


def test_a_driver_that_comes_late_is_found_without_a_restart(make_bench: Callable[..., Bench]) -> None:
    """The loader remembers what its first call found, so it is not called before sysfs has a GPU."""
    bench = make_bench(make_gpus([1]))
    lines = bench.script(
        """
(node.directory / "faults.conf").write_text("driver\\tnot_loaded\\n")
print(error())
node.clear()
(node.directory / "faults.conf").unlink()
node.set_gpus(make_intel_gpus([0]))
print(len(collector.scan().gpus))
"""
    )
    assert lines == ["driver: Intel: sysfs shows no GPU of Intel: is the driver (i915 or xe) loaded?", "1"]


def test_what_cannot_be_opened_is_one_clear_line(make_bench: Callable[..., Bench]) -> None:
    """No library, one that is too old, one without a driver and one without GPUs each say what to do."""
    bench = make_bench(make_intel_gpus([0]))
    lines = bench.script(
        """
import ctypes
sysfs = node.sys_root
collector = IntelCollector(sysfs, node.directory, lambda: None); print(error())
other = _level_zero.LevelZero(ctypes.CDLL("libc.so.6"))
collector = IntelCollector(sysfs, node.directory, lambda: other); print(error())
node.unload_driver()
collector = IntelCollector(sysfs, node.directory); print(error())
node.clear()
print(error())
"""
    )
    assert lines[0] == "driver: Intel: no library: install level-zero (libze_loader.so.1)"
    assert lines[1] == "driver: Level Zero: libze_loader has no zesInit: install a release that has it (level-zero)"
    assert lines[2] == lines[3]  # the loader remembers
    assert "zesInit failed" in lines[2]
    assert lines[2].endswith("then restart the agent")


def test_a_driver_that_goes_makes_its_gpus_lost(make_bench: Callable[..., Bench]) -> None:
    """After it is unloaded each GPU is lost, not idle, and stays listed."""
    bench = make_bench(make_intel_gpus([0, 1]))
    lines = bench.script("collector.scan(); node.unload_driver(); print(by_index(collector.scan(), 'reason'))")
    assert lines == ["['gpu_lost', 'gpu_lost']"]


def test_a_library_that_hangs_costs_its_time_limit_once(make_bench: Callable[..., Bench]) -> None:
    """The first scan waits for the limit, later ones fail at once, and when the call returns it is read again."""
    bench = make_bench(make_intel_gpus([0]))
    lines = bench.script(
        """
collector = BoundedCollector(collector, limit_s=0.5)
collector.scan()
node.inject(None, NvmlFault.hang("zesEngineGetActivity"))
print(error())
print(error())
collector.close()
node.clear()
for _ in range(400):
    if error() is None: break
    time.sleep(0.02)
print(len(collector.scan().gpus))
"""
    )
    assert lines == [
        "driver: intel: the library did not answer for 0.5 s: check the driver (dmesg)",
        "driver: intel: the library has not returned from an earlier call: check the driver (dmesg)",
        "1",
    ]
