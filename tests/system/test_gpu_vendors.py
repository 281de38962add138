"""AMD and Intel GPUs beside NVIDIA ones on a real cluster: gres, device files, environment, attribution, accounting."""

import random
import re
import urllib.request
from collections.abc import Callable
from typing import NamedTuple

import pytest
from tests.system.conftest import SiteFactory

from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.formats.gpu_positions import DRM_MAJOR, NVIDIA_MAJOR, parse_positions
from gpuwaste.testing.attribution import MODES, Field, judge, table
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import NvmlFault, library_env

pytestmark = pytest.mark.cluster

_VARIABLES = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"}
_ENVIRONMENT = f"env | grep -E '^({'|'.join(sorted(_VARIABLES))})=';"


def _mixed_field(make_cluster: Callable[..., LoopbackCluster], *, constrain: bool = False) -> Field:
    """Return a cluster whose GPU nodes have four NVIDIA, two AMD and two Intel GPUs each."""
    seed = random.SystemRandom().randrange(1000)
    print(f"seed {seed}")  # noqa: T201 pytest shows it when the test fails
    variant = Variant(seed=seed, node_prefix=f"m{seed}x", amd=2, intel=2, constrain_devices=constrain)
    return Field(make_cluster(variant), seed)


@pytest.mark.parametrize("constrain", [False, True], ids=["open", "constrained"])
def test_jobs_of_three_vendors_on_one_node_hold_their_own_gpus(
    make_cluster: Callable[..., LoopbackCluster], monkeypatch: pytest.MonkeyPatch, *, constrain: bool
) -> None:
    """By gres type and by number alone: every sample is on the right job or unknown, and most are right."""
    field = _mixed_field(make_cluster, constrain=constrain)
    first, second = field.nodes
    for name, value in field.cluster.env(first).items():
        monkeypatch.setenv(name, value)
    devices = CommandClient().device_list(first)
    assert [(device.type, device.major) for device in devices] == [
        *[("a100", NVIDIA_MAJOR)] * 4,
        *[("mi300x", DRM_MAJOR)] * 2,
        *[("max1550", DRM_MAJOR)] * 2,
    ]
    for node in field.nodes:
        for mode in MODES:
            field.probe(node, mode)
    amd = field.submit("amd", f"{_ENVIRONMENT} {field.load(4)}", gres="gpu:mi300x:1", nodelist=first)
    field.submit("amd-untouched", "sleep 4", gres="gpu:mi300x:1", nodelist=first)
    intel = field.submit("intel", f"{_ENVIRONMENT} {field.load(4)}", gres="gpu:max1550:1", nodelist=first)
    field.submit("intel-untouched", "sleep 4", gres="gpu:max1550:1", nodelist=first)
    field.submit("nvidia", field.load(4), gres="gpu:a100:2", nodelist=first)
    several = field.submit("any", field.load(3), gres="gpu:7", nodelist=second)
    field.cluster.wait_job(several, "RUNNING")
    field.note_whole(several)
    field.wait_all()
    verdicts = judge(field)
    print(table(verdicts))  # noqa: T201 pytest shows it when the test fails
    wrong = [item.text for item in verdicts if item.kind == "wrong"]
    assert not wrong, "\n".join(wrong[:20])
    for label in ("amd", "amd-untouched", "intel", "intel-untouched", "nvidia", "any"):
        mode = "full" if label != "any" or field.cluster.release == (22, 5) else "bare"  # see note_whole
        count = table(verdicts)[f"{mode} {label}"]
        assert count["right"] > count["unknown"], (label, count)
    assert {source for line in field.lines(first, "full") for source in line.get("sources", {}).values()} == {
        "nvml",
        "amd",
        "intel",
    }
    for job_id, kind in ((amd, "mi300x"), (intel, "max1550")):
        variables = dict(line.split("=", 1) for line in field.cluster.job_output(job_id).splitlines() if "=" in line)
        assert variables.keys() >= _VARIABLES
        assert len({variables[name] for name in _VARIABLES}) == 1
        assert not constrain or variables["ZE_AFFINITY_MASK"] == "0"
        tres = field.cluster.run(["sacct", "-n", "-X", "-P", "-o", "AllocTRES", "-j", str(job_id)]).stdout
        assert f"gres/gpu:{kind}=1" in tres


def test_a_job_that_asks_for_three_types_is_seen_by_slurmctlds_word(
    make_cluster: Callable[..., LoopbackCluster],
) -> None:
    """The prolog of Slurm 22.05 is given the GPUs of one type alone: the others are unknown with it, right without.

    A look between the job's start and the prolog's record has slurmctld's word, which is right.
    """
    field = _mixed_field(make_cluster)
    first = field.nodes[0]
    for mode in MODES:
        field.probe(first, mode)
    job_id = field.submit("both", field.load(4), gres="gpu:a100:1,gpu:mi300x:1,gpu:max1550:1", nodelist=first)
    field.cluster.wait_job(job_id, "RUNNING")
    (job,) = field.cluster.show_job(job_id)
    node = field.cluster.nodes[first]
    held = {
        field.uuids[first][node.positions[position]]
        for part in re.findall(r"IDX:([0-9,-]+)", job["GRES"])
        for position in parse_positions(part)
    }
    assert len(held) == 3
    field.wait_all()
    said = {
        mode: [
            {
                uuid
                for uuid, holders in line.get("held", {}).items()
                if any(holder[0] == job_id and holder[2] != "conflict" for holder in holders)
            }
            for line in field.lines(first, mode)
        ]
        for mode in MODES
    }
    assert set().union(*said["bare"]) == held
    assert all(seen <= held for seen in said["full"])
    assert any(seen and seen < held for seen in said["full"])


def _metrics(site: Site, node: str) -> str:
    """Return the agent's page of metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{site.exporters[node]}/metrics", timeout=patient(10)) as answer:
        text: str = answer.read().decode()
    return text


class _Vendor(NamedTuple):
    """One vendor's GPUs: their gres type, and how its library hangs."""

    name: str
    variant: Variant
    kind: str
    title: str
    uuid: str
    mem_b: int
    idle_w: int
    library: str
    function: str


_VENDORS = (
    _Vendor(
        name="amd",
        variant=Variant(node_prefix="amdx", amd=1),
        kind="mi300x",
        title="AMD Instinct MI300X",
        uuid=r"GPU-[0-9a-f]{16}",
        mem_b=196608 << 20,
        idle_w=140,
        library="libamd_smi.so.26",
        function="amdsmi_get_gpu_activity",
    ),
    _Vendor(
        name="intel",
        variant=Variant(node_prefix="intelx", intel=1),
        kind="max1550",
        title=r"Intel\(R\) Data Center GPU Max 1550",
        uuid=r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        mem_b=131072 << 20,
        idle_w=120,
        library="libze_loader.so.1",
        function="zesEngineGetActivity",
    ),
)


@pytest.mark.parametrize("vendor", _VENDORS, ids=[vendor.name for vendor in _VENDORS])
def test_a_job_is_reported_and_a_hanging_library_costs_its_vendors_time_alone(
    make_cluster: Callable[..., LoopbackCluster], make_site: SiteFactory, vendor: _Vendor
) -> None:
    """From the node to the job's document: use, memory and energy of both, and one's time unknown while it hangs."""
    cluster = make_cluster(vendor.variant)
    options = SiteOptions(
        interval_s=1.0, ship_every_s=2.0, sacct_every_s=1.0, agent={"collectors": ["nvml", vendor.name, "host"]}
    )
    site = make_site(cluster, options)
    node = f"{vendor.name}xgpu1"
    site.start_hub()
    site.start_agent(node)
    other = site.submit("alice", "--phase 20:60:4096:500", w=node, gres=f"gpu:{vendor.kind}:1")
    nvidia = site.submit("alice", "--phase 20:40:2048:300", w=node, gres="gpu:a100:1")
    doctor = site.runtime.command("doctor", "--role", "agent", "--config", str(site.config_path(node)))
    said = cluster.run(doctor, env={**site.runtime.env, **library_env(site.native)}, check=False).stdout
    assert f"{vendor.library} can be loaded" in said
    cluster.wait_job(other, "RUNNING")
    metrics = _metrics(site, node)
    assert re.search(rf'gpuwaste_gpu_info\{{[^}}]*name="{vendor.title}"[^}}]*vendor="{vendor.name}"\}} 1', metrics)
    site.nodes[node].inject(None, NvmlFault.hang(vendor.function))
    failed = f'collector_success{{collector="{vendor.name}"}} 0'
    wait_until(lambda: failed in _metrics(site, node), 20, "the hang to be noticed")
    assert 'collector_success{collector="nvml"} 1' in _metrics(site, node)
    site.nodes[node].clear()
    found, beside_it = site.wait_reported(other, 1), site.wait_reported(nvidia, 1)
    (device,), (beside,) = found["runs"][0]["devices"], beside_it["runs"][0]["devices"]
    assert re.fullmatch(vendor.uuid, device["gpu_uuid"])
    assert (device["mem_max_b"], device["mem_total_b"]) == (4096 << 20, vendor.mem_b)
    assert device["mean_util_pct"] == pytest.approx(60, abs=3)
    assert 20 * vendor.idle_w * 0.5 < device["energy_j"] < 20 * 500 * 1.1
    assert device["unknown_by_reason_s"]["driver"] > 0
    assert beside["mean_util_pct"] == pytest.approx(40, abs=3)
    assert beside["unknown_s"] < 3 < 20 - device["unknown_s"]
