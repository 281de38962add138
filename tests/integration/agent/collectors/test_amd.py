"""The AMD collector, through both simulated libraries in a process of its own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.agent.collectors.vendor_bench import Bench

from gpuwaste.testing.sim_build import build_rocm_smi
from gpuwaste.testing.simnvml import NvmlFault, SimGpu, SimNode, build_native, make_amd_gpus, make_gpus

LIBRARIES = ("amdsmi-24", "amdsmi-25", "amdsmi-26", "rocm_smi")
PROLOGUE = """
from gpuwaste.agent.collectors import _amdsmi, _rocm_smi
from gpuwaste.agent.collectors.amd import AmdCollector
finders = (_rocm_smi.find,) if sys.argv[2] == "rocm_smi" else (_amdsmi.find, _rocm_smi.find)
collector = AmdCollector(node.sys_root, finders)
"""


@pytest.fixture(params=LIBRARIES)
def make_bench(request: pytest.FixtureRequest, in_process: Callable[..., str], tmp_path: Path) -> Callable[..., Bench]:
    """Return a function that makes a node of these GPUs; each test runs with each library and generation."""
    library = str(request.param)
    build = build_rocm_smi() if library == "rocm_smi" else build_native()
    if build is None:
        pytest.skip("no rocm_smi.h on this machine")

    def make(gpus: list[SimGpu]) -> Bench:
        node = SimNode.create(tmp_path, [])
        generation = int(library.rpartition("-")[2]) if library.startswith("amdsmi") else 0
        node.set_gpus(gpus, amdsmi=generation)
        return Bench(node, library, in_process, build, prologue=PROLOGUE)

    return make


def test_a_gpu_has_rocms_uuid_and_its_device_files(make_bench: Callable[..., Bench]) -> None:
    """Each library and generation gives the same identity; NVIDIA's GPUs of the node are none of its business."""
    amd = make_amd_gpus([5, 4])
    bench = make_bench([*amd, *make_gpus([0])])
    lines = bench.script(
        "for g in collector.scan().gpus: print(g.uuid, g.vendor, g.minor, g.pci_bus_id, g.mem_total_b,"
        " g.power_limit_mw, g.name, [tuple(n) for n in g.device_nodes][0])"
    )
    assert lines == [
        f"{gpu.uuid} amd {gpu.render} 0000:{gpu.pci_bus_id[9:].lower()} {196608 << 20} 750000 "
        f"AMD Instinct MI300X (226, {gpu.render})"
        for gpu in amd
    ]


def test_a_reading_says_what_a_load_does(make_bench: Callable[..., Bench]) -> None:
    """Percentage, memory, power and the process are those of the GPU in use; energy grows; the other GPU idles."""
    gpus = make_amd_gpus([0, 1])
    bench = make_bench(gpus)
    lines = bench.script(
        """
load = use("1", "60:70:2048:400")
scan = until(lambda s: by_index(s, "util_pct")[1] == 70)
print(by_index(scan, "util_pct"), by_index(scan, "mem_used_b"), by_index(scan, "power_mw"), by_index(scan, "reason"))
print([pids == {load.pid} for pids in by_index(scan, "pids")])
before = by_index(scan, "energy_mj")
print(all(a > b for a, b in zip(by_index(until(lambda s: by_index(s, "energy_mj") > before), "energy_mj"), before)))
load.kill(); load.wait()
scan = until(lambda s: by_index(s, "util_pct")[1] == 0)
print(by_index(scan, "mem_used_b"), by_index(scan, "pids"))
"""
    )
    assert lines == [
        f"[0.0, 70.0] [0, {2048 << 20}] [140000, 400000] ['', '']",
        "[False, True]",
        "True",
        "[0, 0] [frozenset(), frozenset()]",
    ]


def test_partitions_have_their_own_use_and_the_gpu_its_power(make_bench: Callable[..., Bench]) -> None:
    """In CPX each partition has its render node, memory and processes; only libamd_smi has its use, else unknown."""
    (gpu,) = make_amd_gpus([2], partitions=4)
    bench = make_bench([gpu])
    lines = bench.script(
        """
load = use("2/1/0", "60:80:1024:300")
whole, *parts = until(lambda s: by_index(s, "mem_used_b")[2]).gpus
scan = until(lambda s: sys.argv[2] == "rocm_smi" or by_index(s, "util_pct")[2] == 80)
print(whole.instance or "-", whole.minor, whole.device_nodes, scan.readings[whole.uuid].reason)
for part in parts:
    reading = scan.readings[part.uuid]
    print(part.instance, part.minor, part.uuid, part.parent_uuid == whole.uuid, part.mem_total_b >> 20,
        reading.util_pct, reading.mem_used_b >> 20, reading.power_mw, reading.pids == {load.pid}, reading.reason or "-")
print(scan.readings[whole.uuid].power_mw)
load.kill()
"""
    )
    assert lines[0] == "- None () partition"
    known = bench.library != "rocm_smi"
    numbered = bench.library != "amdsmi-24"  # generation 24 does not name the render node of a partition
    for at, line in enumerate(lines[1:5]):
        instance, minor, uuid, *rest = line.split()
        assert (instance, uuid) == (str(at), f"{gpu.uuid}-p{at}")
        assert minor == (str(128 + at) if numbered else "None")
        util = f"{80.0 if at == 1 else 0.0}" if known else "None"
        used = "1024" if at == 1 else "0"
        assert rest == ["True", "49152", util, used, "None", str(at == 1), "-" if known else "partition"]
    assert lines[5] == "300000"


def test_a_gpu_cut_anew_is_listed_anew(make_bench: Callable[..., Bench]) -> None:
    """When an administrator cuts a GPU, the next scan lists its partitions, with a new generation."""
    bench = make_bench(make_amd_gpus([0]))
    lines = bench.script(
        """
first = collector.scan()
gpus = make_amd_gpus([0], partitions=2)
kept = [line for line in (node.directory / "devices.conf").read_text().splitlines() if line.startswith("amdsmi\\t")]
node.set_gpus(gpus, amdsmi=int(kept[0].split("\\t")[1]) if kept else 0)
second = collector.scan()
print(len(first.gpus), [gpu.instance for gpu in second.gpus if gpu.uuid.startswith(gpus[0].uuid)])
print(second.generation - first.generation)
"""
    )
    assert lines == ["1 ['', '0', '1']", "1"]


def test_what_goes_wrong_stays_with_its_field_or_its_gpu(make_bench: Callable[..., Bench]) -> None:
    """A missing value is absent, garbage is no percentage, and a GPU that answers nothing but "not found" is lost."""
    one, two, three = make_amd_gpus([0, 1, 2])
    bench = make_bench([one, two, three])
    busy = "rsmi_dev_busy_percent_get" if bench.library == "rocm_smi" else "amdsmi_get_gpu_activity"
    energy = "rsmi_dev_energy_count_get" if bench.library == "rocm_smi" else "amdsmi_get_energy_count"
    bench.node.inject(one, NvmlFault.error(busy, 2))
    bench.node.inject(two, NvmlFault.error(energy, 2))
    lines = bench.script(
        f"""
scan = collector.scan()
print(by_index(scan, "util_pct"), by_index(scan, "reason"), [value is None for value in by_index(scan, "energy_mj")])
node.inject({three.uuid!r}, NvmlFault.lost())
print(by_index(collector.scan(), "reason"))
"""
    )
    assert lines[0] == "[None, 0.0, 0.0] ['not_supported', '', ''] [False, True, False]"
    assert lines[1] == "['not_supported', '', 'gpu_lost']"


def test_processes_that_cannot_be_read_are_not_none(make_bench: Callable[..., Bench]) -> None:
    """A refusal for one process makes all processes unknown, not absent; a process that has ended is left out."""
    bench = make_bench(make_amd_gpus([0]))
    of_pid = "rsmi_compute_process_gpus_get" if bench.library == "rocm_smi" else "amdsmi_get_gpu_compute_process_gpus"
    refused, ended = (4, 10) if bench.library == "rocm_smi" else (10, 31)
    lines = bench.script(
        f"""
load = use("0", "60:70:2048:400")
until(lambda s: by_index(s, "pids")[0])
for code in ({refused}, {ended}):
    node.inject(None, NvmlFault.error({of_pid!r}, code))
    print(by_index(collector.scan(), "pids"))
    node.clear()
load.kill()
"""
    )
    assert lines == ["[None]", "[frozenset()]"]


def test_a_driver_that_is_gone_fails_the_scan_until_it_is_back(make_bench: Callable[..., Bench]) -> None:
    """One clear line says what to look at; the next scan after the driver's return reads again."""
    bench = make_bench(make_amd_gpus([0]))
    lines = bench.script(
        """
print(len(collector.scan().gpus))
node.unload_driver()
print(error())
print(error())
node.clear()
print(len(collector.scan().gpus))
"""
    )
    assert (lines[0], lines[-1]) == ("1", "1")
    assert all(line.startswith("driver: ") and "driver loaded?" in line for line in lines[1:3])


def test_garbage_is_no_value(in_process: Callable[..., str]) -> None:
    """A percentage of all bits is absent, a name is printable, and an absurd count of GPUs is one clear line."""
    script = """
import ctypes
from gpuwaste.agent.collectors._amd_library import percent
from gpuwaste.agent.collectors._library import device_count, text
from gpuwaste.agent.bounded_calls import CollectorError
print(percent(2**32 - 1), percent(65535), percent(100), ascii(text(b"MI300X\\x1b[2J" + bytes([255, 254]) + b"\\0rest")))
for count in (None, 2**31):
    try: device_count(count, "AMD SMI")
    except CollectorError as error: print(error)
"""
    assert in_process(script, env={}).splitlines() == [
        r"None None 100.0 'MI300X[2J\ufffd\ufffd'",
        "AMD SMI: cannot list GPUs (no answer)",
        "AMD SMI: cannot list GPUs (2147483648 devices)",
    ]


def test_no_library_is_one_clear_line(make_bench: Callable[..., Bench]) -> None:
    """A node without AMD's libraries says which package is missing."""
    bench = make_bench(make_amd_gpus([0]))
    lines = bench.script("collector = AmdCollector(node.directory, (lambda: None,)); print(error())")
    assert lines == ["driver: AMD: no library: install amd-smi-lib (libamd_smi.so) or rocm-smi-lib (librocm_smi64.so)"]


def test_a_library_that_hangs_costs_its_time_limit_once(make_bench: Callable[..., Bench]) -> None:
    """The first scan waits for the limit, later ones fail at once, and when the call returns it is read again."""
    bench = make_bench(make_amd_gpus([0]))
    busy = "rsmi_dev_busy_percent_get" if bench.library == "rocm_smi" else "amdsmi_get_gpu_activity"
    lines = bench.script(
        f"""
collector = BoundedCollector(collector, limit_s=0.5)
collector.scan()
node.inject(None, NvmlFault.hang({busy!r}))
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
        "driver: amd: the library did not answer for 0.5 s: check the driver (dmesg)",
        "driver: amd: the library has not returned from an earlier call: check the driver (dmesg)",
        "1",
    ]
