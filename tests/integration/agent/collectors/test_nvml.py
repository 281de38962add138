"""The NVML collector, through the simulated library in a process of its own."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwaste.testing.simnvml import Arch, MigInstance, NvmlFault, SimNode, make_gpus

PROLOGUE = """
import sys, time
from pathlib import Path
from gpuwaste.agent.collectors import CollectorSettings, create_collectors
from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.core.clock import SystemClock
from gpuwaste.testing.simnvml import *
node = SimNode(Path(sys.argv[1])) if len(sys.argv) > 1 else None
minors = node.mig_minors if node else Path("/none")
settings = CollectorSettings(SystemClock(), "gpu1", minors, "", Path("/none"), Path("/none"))
nvml = create_collectors(["nvml"], settings).gpu[0]
def by_index(scan, field):
    found = [getattr(scan.readings[gpu.uuid], field) for gpu in scan.gpus]
    return [str(value) if field == "reason" else value for value in found]
def until(condition):
    for _ in range(200):
        scan = nvml.scan()
        if condition(scan): return scan
        time.sleep(0.05)
    raise SystemExit(f"never came: {scan}")
def error():
    try: nvml.scan()
    except CollectorError as problem: return problem.reason
"""


@pytest.fixture
def script(in_process: Callable[..., str], tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that runs a script on a node and returns the lines it prints."""

    def run(node: SimNode, text: str) -> list[str]:
        return in_process(PROLOGUE + text, str(node.directory), env=node.env).splitlines()

    return run


def test_identities_carry_the_minor_that_is_not_the_index(script: Callable[..., list[str]], tmp_path: Path) -> None:
    """Each GPU has its UUID, its NVML index and the minor of its device file, which need not agree."""
    gpus = make_gpus([3, 1, 0, 2])
    node = SimNode.create(tmp_path, gpus)
    lines = script(node, "for g in nvml.scan().gpus: print(g.uuid, g.index, g.minor, g.mem_total_b, g.power_limit_mw)")
    assert lines == [f"{g.uuid} {i} {g.minor} {40960 << 20} 400000" for i, g in enumerate(gpus)]


def test_a_reading_has_the_drivers_samples_since_the_last_one(script: Callable[..., list[str]], tmp_path: Path) -> None:
    """Duty samples are newer from scan to scan, none is read twice, and their mean is the utilization."""
    node = SimNode.create(tmp_path, make_gpus([0]))
    lines = script(
        node,
        """
first = until(lambda scan: by_index(scan, "duty")[0])
second = until(lambda scan: by_index(scan, "duty")[0])
one, two = by_index(first, "duty")[0], by_index(second, "duty")[0]
print(one[-1][0] < two[0][0], by_index(second, "util_pct")[0] == sum(p for _, p in two) / len(two))
""",
    )
    assert lines == ["True True"]


@pytest.mark.parametrize(
    ("function", "field"),
    [
        ("nvmlDeviceGetPowerUsage", "power_mw"),
        ("nvmlDeviceGetTotalEnergyConsumption", "energy_mj"),
        ("nvmlDeviceGetComputeRunningProcesses", "pids"),
        ("nvmlDeviceGetMemoryInfo", "mem_used_b"),
    ],
)
def test_a_field_that_cannot_be_read_is_none_alone(
    script: Callable[..., list[str]], tmp_path: Path, function: str, field: str
) -> None:
    """NOT_SUPPORTED for one field leaves all others of the GPU as they are."""
    node = SimNode.create(tmp_path, make_gpus([0, 1]))
    node.inject(None, NvmlFault.not_supported(function))
    lines = script(
        node,
        """
reading = nvml.scan().readings.popitem()[1]
print([f for f in ("power_mw", "energy_mj", "pids", "mem_used_b", "util_pct") if getattr(reading, f) is None])
""",
    )
    assert lines == [str([field])]


def test_without_samples_the_momentary_utilization_is_used(script: Callable[..., list[str]], tmp_path: Path) -> None:
    """Where nvmlDeviceGetSamples is not supported, utilization rates stand in; where neither is, the reason says so."""
    node = SimNode.create(tmp_path, make_gpus([0]))
    node.inject(None, NvmlFault.not_supported("nvmlDeviceGetSamples"))
    lines = script(
        node,
        """
scan = nvml.scan()
print(by_index(scan, "duty"), by_index(scan, "util_pct"), by_index(scan, "reason"))
node.inject(None, NvmlFault.not_supported("nvmlDeviceGetUtilizationRates"))
scan = nvml.scan()
print(by_index(scan, "util_pct"), by_index(scan, "reason"))
""",
    )
    assert lines == ["[()] [0.0] ['']", "[None] ['not_supported']"]


def test_a_lost_gpu_is_lost_alone(script: Callable[..., list[str]], tmp_path: Path) -> None:
    """GPU_IS_LOST makes one GPU unknown; it stays in the list under its identity, and comes back when it is back."""
    gpus = make_gpus([0, 1])
    node = SimNode.create(tmp_path, gpus)
    lines = script(
        node,
        f"""
nvml.scan()
node.inject({gpus[1].uuid!r}, NvmlFault.lost())
for _ in range(2):
    scan = nvml.scan()
    print(by_index(scan, "reason"), by_index(scan, "power_mw")[1], scan.gpus[1].uuid)
node.clear()
nvml.scan()
print(by_index(nvml.scan(), "reason"))
""",
    )
    assert lines == [*[f"['', 'gpu_lost'] None {gpus[1].uuid}"] * 2, "['', '']"]


def test_a_reset_driver_fails_the_scan_and_the_next_one_opens_it_again(
    script: Callable[..., list[str]], tmp_path: Path
) -> None:
    """UNINITIALIZED is the reason driver; NVML is closed, nothing holds the driver, and the generation grows."""
    node = SimNode.create(tmp_path, make_gpus([0]))
    lines = script(
        node,
        """
print(nvml.scan().generation, len(node.clients()))
node.reset_driver()
print(error(), len(node.clients()))
print(nvml.scan().generation)
node.unload_driver()
print(error(), error(), len(node.clients()))
node.clear()
print(nvml.scan().generation)
nvml.close()
print(len(node.clients()))
""",
    )
    assert lines == ["1 1", "driver 0", "2", "driver driver 0", "3", "0"]


def test_no_library_is_an_error_of_this_collector(in_process: Callable[..., str], tmp_path: Path) -> None:
    """Without libnvidia-ml the scan fails with the reason driver, again and again, and nothing else."""
    out = in_process(PROLOGUE + "print(error(), error())", env={"LD_LIBRARY_PATH": str(tmp_path)})
    assert out.strip() in {"driver driver", "None None"}  # a machine with a real driver answers


def test_mig_instances_have_their_own_minors_and_no_duty_cycle(
    script: Callable[..., list[str]], tmp_path: Path
) -> None:
    """On Ampere an instance's utilization is unknown for the reason mig; its minor is that of its nvidia-caps file."""
    plain, other = make_gpus([1, 0])
    gpu = replace(plain, mig_enabled=True, mig=(MigInstance(1), MigInstance(5)))
    node = SimNode.create(tmp_path, [gpu, other])
    lines = script(
        node,
        """
scan = nvml.scan()
for g in scan.gpus:
    r = scan.readings[g.uuid]
    print(g.instance or "whole", g.minor, g.parent_uuid or "-", r.reason or "-")
""",
    )
    assert [line.split() for line in lines] == [
        ["whole", "1", "-", "mig"],
        ["1/0", str(3 + 135 + 9 + 1), gpu.uuid, "mig"],
        ["5/0", str(3 + 135 + 45 + 1), gpu.uuid, "mig"],
        ["whole", "0", "-", "-"],
    ]


def test_gpm_gives_hopper_a_share_of_sms_and_its_instances_a_utilization(
    script: Callable[..., list[str]], tmp_path: Path
) -> None:
    """From the second scan on GPM answers: sm_ratio of a whole GPU, utilization of a MIG instance."""
    plain, split = make_gpus([0, 1], Arch.HOPPER)
    node = SimNode.create(tmp_path, [plain, replace(split, mig_enabled=True, mig=(MigInstance(2),))])
    lines = script(
        node,
        """
print(by_index(nvml.scan(), "sm_ratio"))
scan = until(lambda scan: by_index(scan, "util_pct")[2] is not None)
print(by_index(scan, "sm_ratio"), by_index(scan, "reason"))
""",
    )
    assert lines == ["[None, None, None]", "[0.0, None, 0.0] ['', 'mig', '']"]


def test_a_change_of_mig_makes_a_new_generation(script: Callable[..., list[str]], tmp_path: Path) -> None:
    """Instances that appear while NVML is open are listed by the next scan, under a higher generation."""
    gpu = make_gpus([0])[0]
    node = SimNode.create(tmp_path, [replace(gpu, mig_enabled=True)])
    lines = script(
        node,
        f"""
from dataclasses import replace
print(nvml.scan().generation, nvml.scan().generation, len(nvml.scan().gpus))
gpu = replace(make_gpus([0])[0], uuid={gpu.uuid!r}, mig_enabled=True, mig=(MigInstance(1),))
node.set_gpus([gpu])
print(nvml.scan().generation, len(nvml.scan().gpus))
""",
    )
    assert lines == ["1 1 1", "2 2"]


def test_xid_errors_are_counted_by_gpu_without_waiting(script: Callable[..., list[str]], tmp_path: Path) -> None:
    """Xid events are counted once each; a scan without any does not wait for one."""
    gpus = make_gpus([0, 1])
    node = SimNode.create(tmp_path, gpus)
    lines = script(
        node,
        f"""
gpu = next(g for g in make_gpus([0]))
from dataclasses import replace
print(nvml.scan().xids)
for code in (79, 48, 79): node.xid(replace(gpu, uuid={gpus[1].uuid!r}), code)
print(sorted(nvml.scan().xids.items()))
print(sorted(nvml.scan().xids.items()))
""",
    )
    counted = str([((gpus[1].uuid, 48), 1), ((gpus[1].uuid, 79), 2)])
    assert lines == ["{}", counted, counted]


def test_a_gpu_that_left_the_count_is_still_listed_as_lost(script: Callable[..., list[str]], tmp_path: Path) -> None:
    """A GPU that NVML no longer counts stays in the list under its identity; the others keep theirs."""
    gpus = make_gpus([0, 1, 2])
    node = SimNode.create(tmp_path, gpus)
    lines = script(
        node,
        f"""
nvml.scan()
node.inject({gpus[1].uuid!r}, NvmlFault.gone())
nvml.scan()
for g in (scan := nvml.scan()).gpus: print(g.uuid, scan.readings[g.uuid].reason or "-")
""",
    )
    assert lines == [f"{gpus[0].uuid} -", f"{gpus[2].uuid} -", f"{gpus[1].uuid} gpu_lost"]


def test_a_hopper_s_instance_has_gpm_s_utilization_and_dcgm_s_profile(
    script: Callable[..., list[str]], tmp_path: Path
) -> None:
    """GPM gives an instance its utilization; the series of its GPU instance on the page is its profile."""
    (split,) = make_gpus([0], Arch.HOPPER)
    two = (MigInstance(2), MigInstance(5))
    node = SimNode.create(tmp_path, [replace(split, mig_enabled=True, mig=two)])
    page = f'DCGM_FI_PROF_SM_ACTIVE{{UUID="{split.uuid}",GPU_I_ID="5",GPU_I_PROFILE="1g.10gb"}} 0.25\n'
    lines = script(
        node,
        f"""
from gpuwaste.agent.collectors.dcgm import parse_metrics
from gpuwaste.agent.readings import with_profiles
page = {page!r}
scan = until(lambda scan: all(r.util_pct is not None for r in scan.readings.values() if r.uuid.startswith("MIG-")))
found = with_profiles(scan.gpus, scan.readings, parse_metrics(page.encode(), "page"))
for gpu in scan.gpus:
    profile = found[gpu.uuid].profile
    if gpu.instance: print(gpu.uuid, found[gpu.uuid].util_pct, profile and profile.sm_active)
""",
    )
    assert lines == [f"{two[0].uuid} 0.0 None", f"{two[1].uuid} 0.0 0.25"]
