"""AMD GPUs beside NVIDIA ones on a real cluster: gres type, device files, environment, attribution, accounting."""

import random
import re
import urllib.request
from collections.abc import Callable

import pytest
from tests.system.conftest import SiteFactory

from gpuwaste.slurm.commands import CommandClient
from gpuwaste.slurm.gres import parse_positions
from gpuwaste.slurm.slurmd_g import DRM_MAJOR, NVIDIA_MAJOR
from gpuwaste.testing.attribution import MODES, Field, judge, table
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import NvmlFault, library_env

pytestmark = pytest.mark.cluster


def _mixed_field(make_cluster: Callable[..., LoopbackCluster], *, constrain: bool = False) -> Field:
    """Return a cluster whose GPU nodes have four NVIDIA and two AMD GPUs each."""
    seed = random.SystemRandom().randrange(1000)
    print(f"seed {seed}")  # noqa: T201 pytest shows it when the test fails
    variant = Variant(seed=seed, node_prefix=f"m{seed}x", amd=2, constrain_devices=constrain)
    return Field(make_cluster(variant), seed)


@pytest.mark.parametrize("constrain", [False, True], ids=["open", "constrained"])
def test_jobs_of_both_vendors_on_one_node_hold_their_own_gpus(
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
    ]
    for node in field.nodes:
        for mode in MODES:
            field.probe(node, mode)
    names = "env | grep _VISIBLE_DEVICES | sort;"
    amd = field.submit("amd", f"{names} {field.load(4)}", gres="gpu:mi300x:1", nodelist=first)
    field.submit("amd-untouched", "sleep 4", gres="gpu:mi300x:1", nodelist=first)
    field.submit("nvidia", field.load(4), gres="gpu:a100:2", nodelist=first)
    field.submit("any", field.load(3), gres="gpu:5", nodelist=second)
    field.wait_all()
    verdicts = judge(field)
    print(table(verdicts))  # noqa: T201 pytest shows it when the test fails
    wrong = [item.text for item in verdicts if item.kind == "wrong"]
    assert not wrong, "\n".join(wrong[:20])
    for label in ("amd", "amd-untouched", "nvidia", "any"):
        count = table(verdicts)[f"full {label}"]
        assert count["right"] > count["unknown"], (label, count)
    assert {source for line in field.lines(first, "full") for source in line.get("sources", {}).values()} == {
        "nvml",
        "amd",
    }
    position = field.cluster.job_output(amd).split()
    assert position[:2] == (["CUDA_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=0"] if constrain else position[:2])
    assert [word.split("=")[0] for word in position[:2]] == ["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]
    tres = field.cluster.run(["sacct", "-n", "-X", "-P", "-o", "AllocTRES", "-j", str(amd)]).stdout
    assert "gres/gpu:mi300x=1" in tres


def test_a_job_that_asks_for_two_types_is_seen_by_slurmctlds_word(
    make_cluster: Callable[..., LoopbackCluster],
) -> None:
    """The prolog of Slurm 22.05 is given the GPUs of one type alone: the others are unknown with it, right without."""
    field = _mixed_field(make_cluster)
    first = field.nodes[0]
    for mode in MODES:
        field.probe(first, mode)
    job_id = field.submit("both", field.load(4), gres="gpu:a100:1,gpu:mi300x:1", nodelist=first)
    field.cluster.wait_job(job_id, "RUNNING")
    (job,) = field.cluster.show_job(job_id)
    node = field.cluster.nodes[first]
    held = {
        field.uuids[first][(*node.minors, *node.amd)[position]]
        for part in re.findall(r"IDX:([0-9,-]+)", job["GRES"])
        for position in parse_positions(part)
    }
    assert len(held) == 2
    field.wait_all()
    said = {
        mode: {
            uuid
            for line in field.lines(first, mode)
            for uuid, holders in line.get("held", {}).items()
            if any(holder[0] == job_id and holder[2] != "conflict" for holder in holders)
        }
        for mode in MODES
    }
    assert said["bare"] == held
    assert said["full"] < held


def _metrics(site: Site, node: str) -> str:
    """Return the agent's page of metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{site.exporters[node]}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def test_an_amd_job_is_reported_and_a_hanging_library_costs_amd_time_alone(
    make_cluster: Callable[..., LoopbackCluster], make_site: SiteFactory
) -> None:
    """From the node to the job's document: use, memory and energy of both, and AMD's time unknown while it hangs."""
    cluster = make_cluster(Variant(node_prefix="amdx", amd=1))
    options = SiteOptions(
        interval_s=1.0, ship_every_s=2.0, sacct_every_s=1.0, agent={"collectors": ["nvml", "amd", "host"]}
    )
    site = make_site(cluster, options)
    node = "amdxgpu1"
    site.start_hub()
    site.start_agent(node)
    amd = site.submit("alice", "--phase 20:60:4096:500", w=node, gres="gpu:mi300x:1")
    nvidia = site.submit("alice", "--phase 20:40:2048:300", w=node, gres="gpu:a100:1")
    doctor = site.runtime.command("doctor", "--role", "agent", "--config", str(site.config_path(node)))
    said = cluster.run(doctor, env={**site.runtime.env, **library_env(site.native)}, check=False).stdout
    assert "libamd_smi.so.26 can be loaded" in said
    cluster.wait_job(amd, "RUNNING")
    metrics = _metrics(site, node)
    assert re.search(r'gpuwaste_gpu_info\{[^}]*name="AMD Instinct MI300X"[^}]*vendor="amd"\} 1', metrics)
    site.nodes[node].inject(None, NvmlFault.hang("amdsmi_get_gpu_activity"))
    wait_until(lambda: 'collector_success{collector="amd"} 0' in _metrics(site, node), 20, "the hang to be noticed")
    assert 'collector_success{collector="nvml"} 1' in _metrics(site, node)
    site.nodes[node].clear()
    found, other = site.wait_reported(amd, 1), site.wait_reported(nvidia, 1)
    (device,), (beside,) = found["runs"][0]["devices"], other["runs"][0]["devices"]
    assert re.fullmatch(r"GPU-[0-9a-f]{16}", device["gpu_uuid"])
    assert (device["mem_max_b"], device["mem_total_b"]) == (4096 << 20, 196608 << 20)
    assert device["mean_util_pct"] == pytest.approx(60, abs=3)
    assert 20 * 140 * 0.5 < device["energy_j"] < 20 * 500 * 1.1
    assert device["unknown_by_reason_s"]["driver"] > 0
    assert beside["mean_util_pct"] == pytest.approx(40, abs=3)
    assert beside["unknown_s"] < 3 < 20 - device["unknown_s"]
