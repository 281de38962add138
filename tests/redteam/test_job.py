"""A job as attacker, on a real cluster: what its user can write gives it no GPU, and takes none from anybody.

Its user writes environments, process names, command lines, sockets and directories. Slurm's own word and the kernel's
decide: whose waste it is, how many GPUs are stored, and whose processes they are.
"""

import shlex
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.asking import ended_job, metric, wait_ticks
from tests.system.conftest import fresh_site

from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.running_site import Site, SiteOptions

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]  # a cluster, and jobs that run to their ends
ClusterFactory = Callable[..., LoopbackCluster]

HELD_S = 12
OPTIONS = SiteOptions(interval_s=0.5, ship_every_s=1.0, sacct_every_s=1.0)
DIGITS = "9" * 5000
FORGED = (
    "SLURM_JOB_GPUS=0,1,2,3",
    "SLURM_JOB_GPUS=3",
    "SLURM_JOB_GPUS=0-1023",
    "SLURM_JOB_GPUS= SLURM_SHARDS_ON_NODE=999999",
    f"SLURM_JOB_ID={DIGITS} SLURM_JOB_GPUS={DIGITS}",
)
IMPOSTOR = """
import ctypes, os, pathlib, socket, subprocess, sys, time
node, victim = sys.argv[1], sys.argv[2]
here = pathlib.Path(os.environ["HOME"]) / f"impostor-{os.getpid()}"
spool = here / "spool"
spool.mkdir(parents=True)
kept = []
for step in ("0", "4294967291", "4294967292"):
    name = f"{node}_{victim}.{step}"
    for address in (str(spool / name), f"\\0{spool / name}", f"\\0x\\n0: 2 0 0 1 1 9 {spool / name}"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen()
        kept.append(listener)
for place in (f"slurmstepd.scope/job_{victim}/step_0/user/task_0", f"slurm_{node}/uid_0/job_{victim}"):
    folder = here / "cgroup" / place
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").write_text(f"{os.getpid()}\\n")
ctypes.CDLL(None).prctl(15, b"slurmstepd", 0, 0, 0)
forged = {"SLURM_JOB_ID": victim, "SLURMD_NODENAME": node, "SLURM_JOB_GPUS": "0-1023"}
title = f"slurmstepd: [{victim}.batch]"
child = subprocess.Popen([title, "600"], executable="/bin/sleep", env=os.environ | forged, start_new_session=True)
time.sleep(float(sys.argv[3]))
child.kill()
"""


@pytest.fixture(scope="module")
def site(cluster: LoopbackCluster, native: Path) -> Iterator[Site]:
    """Start a hub, and an agent beside a node whose prolog leaves its files."""
    started = fresh_site(cluster, native, OPTIONS)
    started.prepare()
    started.start_hub()
    started.start_agent(_node(started))
    yield started
    started.stop()
    cluster.reset()


def _node(site: Site) -> str:
    return next(iter(site.nodes))


def _hold(site: Site, user: str, script: str, gpus: int) -> int:
    """Submit a job that holds GPUs of the agent's node and leaves them idle."""
    return site.cluster.sbatch(script, user, w=_node(site), gres=f"gpu:{gpus}", output="/dev/null")


def _ended(site: Site, job: int, gpus: int) -> dict[str, Any]:
    site.cluster.wait_accounted(job)
    (run,) = ended_job(site, job, gpus, timeout_s=60)
    return run


def _assert_all_is_waste(run: dict[str, Any], gpus: int) -> None:
    """Look that the run has its own GPUs, no more and no fewer, and that all their time but its edges is waste."""
    assert len({device["gpu_uuid"] for device in run["devices"]}) == len(run["devices"]) == gpus, run["devices"]
    for device in run["devices"]:
        assert device["wasted_s"] > HELD_S - 4, device
        assert "conflict" not in device["unknown_by_reason_s"], device


def _assert_healthy(site: Site) -> None:
    """No collector of the agent has failed."""
    wait_ticks(site, _node(site), 2)
    assert set(metric(site, _node(site), "gpuwaste_agent_collector_success")) == {1.0}


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: forged[:40])
def test_a_forged_environment_changes_nobody_s_waste(site: Site, forged: str) -> None:
    """A batch script that becomes a program with another SLURM_JOB_GPUS: its own waste and its neighbour's stay."""
    victim = _hold(site, "alice", f"sleep {HELD_S}", 2)
    attacker = _hold(site, "bob", f"exec env {forged} sleep {HELD_S}", 1)
    _assert_all_is_waste(_ended(site, victim, 2), 2)
    _assert_all_is_waste(_ended(site, attacker, 1), 1)
    _assert_healthy(site)


def test_names_sockets_and_directories_like_slurms_move_nothing(site: Site) -> None:
    """Processes, sockets and directories that are called as slurmstepd's are: the victim's job is what it was."""
    victim = _hold(site, "alice", f"sleep {HELD_S}", 2)
    site.cluster.wait_job(victim, "RUNNING")
    words = " ".join(shlex.quote(word) for word in (textwrap.dedent(IMPOSTOR), _node(site), str(victim), str(HELD_S)))
    attacker = _hold(site, "bob", f"exec python3 -c {words}", 1)
    ended = _ended(site, victim, 2)
    _assert_all_is_waste(ended, 2)
    _assert_all_is_waste(_ended(site, attacker, 1), 1)
    _assert_healthy(site)


def test_without_prolog_a_job_stores_no_gpu_but_its_own(make_cluster: ClusterFactory, native: Path) -> None:
    """Where slurmctld alone tells, a forged list of 1,024 GPUs adds no row, and the cluster's GPU time stays."""
    cluster = make_cluster(Variant(seed=5, node_prefix="redteam", prolog=(), epilog=()))
    site = fresh_site(cluster, native, OPTIONS)
    site.prepare()
    site.start_hub()
    site.start_agent(_node(site))
    try:
        victim = _hold(site, "alice", f"sleep {HELD_S}", 2)
        attacker = _hold(site, "bob", f"exec env SLURM_JOB_GPUS=0-1023 sleep {HELD_S}", 1)
        _assert_all_is_waste(_ended(site, victim, 2), 2)
        _assert_all_is_waste(_ended(site, attacker, 1), 1)
        total = site.json("report", "--allusers", user="root")["totals"]
        assert total["devices"] == 3
        assert total["gpu_s"] < 3 * (HELD_S + 4)
    finally:
        site.stop()
