"""The health gate on a real cluster: the agent sees a GPU go, and Slurm's prolog does what the settings say."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import NvmlFault

pytestmark = pytest.mark.cluster
PROLOGS = Path(__file__).parents[2] / "plugins" / "prolog.d"
NODE = "gpu1"
STALE_S = 15
WAIT_S = 60


class Gated:
    """A site whose node gpu1 has the gate in its prolog, after the other script of ours."""

    def __init__(self, site: Site, conf: Path) -> None:
        self.site, self.cluster, self._conf = site, site.cluster, conf
        self.run_dir, self.jobs_dir = self.cluster.nodes[NODE].run_dir, self.cluster.nodes[NODE].jobs_dir
        self.sim = site.nodes[NODE]

    def mode(self, mode: str) -> None:
        """Set the gate's mode."""
        self._conf.write_text(f"mode = {mode}\nstale_s = {STALE_S}\nscontrol = {shutil.which('scontrol')}\n")

    def uuid_at(self, position: int) -> str:
        """Return the GPU that Slurm calls by this position: gres.conf has the devices in another order than NVML."""
        return self.sim.uuids()[self.cluster.nodes[NODE].minors[position]]

    def row(self, position: int) -> list[str]:
        """Return the words of the health file's line for a GPU."""
        uuid = self.uuid_at(position)
        rows = [line.split() for line in (self.run_dir / "health").read_text().splitlines()]
        return next((row for row in rows if row[0] == uuid), [])

    def wait_state(self, position: int, state: str) -> list[str]:
        """Wait until the agent calls the GPU so; return its line."""
        path = self.run_dir / "health"
        wait_until(
            lambda: path.exists() and self.row(position)[3:4] == [state], WAIT_S, f"position {position} to be {state}"
        )
        return self.row(position)

    def job(self, gpus: int, *, hold: bool = True) -> int:
        """Submit a job to the node that keeps its GPUs until it is cancelled, or ends at once."""
        return self.cluster.sbatch(
            "sleep 300" if hold else "true", "alice", w=NODE, gres=f"gpu:{gpus}", output="/dev/null"
        )

    def minors(self, job: int) -> list[int]:
        """Return the device minors that a running job holds on the node."""
        found = self.cluster.job_minors(NODE, job)
        assert found is not None
        return found

    def held_back(self, job: int) -> dict[str, str]:
        """Wait until slurmctld has put the job back into the queue; return its record."""
        record: dict[str, str] = {}

        def back() -> bool:
            record.update(self.cluster.show_job(job)[0])
            return record["JobState"] == "PENDING" and record["Restarts"] != "0"

        wait_until(back, WAIT_S, "the job to be requeued", lambda: str(record), poll_s=0.5)
        return record

    def reason(self) -> str:
        """Return the reason for which the node is drained."""
        text = self.cluster.run(["scontrol", "-o", "show", "node", NODE]).stdout
        return text.partition(" Reason=")[2].strip()

    def drained(self) -> bool:
        """Whether the node takes no more jobs."""
        return self.cluster.node_states()[NODE].startswith("drain")


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """Make a directory that root and slurmd can enter."""
    reason = cluster_host.missing()
    if reason:
        pytest.skip(reason)
    directory = Path(tempfile.mkdtemp(prefix="gwh", dir="/tmp"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def site(place: Path, native: Path) -> Iterator[Site]:
    """Start a cluster with its devices in a drawn order, and the agent of one node."""
    wrapper = place / "gate"
    wrapper.write_text(
        f"#!/bin/sh\nexport GPUWASTE_HEALTH_CONF={place}/health-gate.conf\nexec {PROLOGS}/gpuwaste-health.sh\n"
    )
    wrapper.chmod(0o755)
    prolog = (str(PROLOGS / "gpuwaste.sh"), str(wrapper))
    with LoopbackCluster(place / "c", Variant(seed=5, prolog=prolog), remove=True) as cluster:
        site = Site(cluster, native, SiteOptions(interval_s=1.0))
        site.prepare()
        site.start_agent(NODE)
        yield site
        site.stop()


@pytest.fixture
def gated(site: Site, place: Path) -> Iterator[Gated]:
    """Return the site with sound GPUs, before and after the test."""
    made = Gated(site, place / "health-gate.conf")
    if not site.agents[NODE].alive():
        site.start_agent(NODE)
    for position in range(4):
        made.wait_state(position, "ok")
    yield made
    made.sim.clear()
    if made.drained():
        site.cluster.run(["scontrol", "update", f"NodeName={NODE}", "State=RESUME"])
    site.cluster.cancel_jobs()


def test_off_lets_the_job_run_on_a_lost_gpu(gated: Gated) -> None:
    """What a fresh install does, though the agent knows."""
    gated.mode("off")
    gated.sim.inject(gated.uuid_at(2), NvmlFault.lost())
    assert gated.wait_state(2, "lost")[2] == "2"
    port = gated.site.exporters[NODE]
    page = gated.cluster.run(["curl", "-sf", f"http://127.0.0.1:{port}/metrics"]).stdout
    assert f'gpuwaste_gpu_healthy{{node="{NODE}",state="lost",uuid="{gated.uuid_at(2)}"}} 0.0' in page
    gated.cluster.wait_job(gated.job(4), "RUNNING")
    assert not gated.drained()


def test_suggest_names_the_job_that_got_the_lost_gpu(gated: Gated) -> None:
    """Four jobs of one GPU each run; the one at the lost GPU's position is named, with the command to drain."""
    gated.mode("suggest")
    gated.sim.inject(gated.uuid_at(1), NvmlFault.lost())
    gated.wait_state(1, "lost")
    for job in [gated.job(1) for _ in range(4)]:
        gated.cluster.wait_job(job, "RUNNING")
        if gated.minors(job) == [gated.cluster.nodes[NODE].minors[1]]:
            owner = job
    line = (gated.jobs_dir / "health-gate").read_text()
    assert line.startswith(f"job {owner} was given an unusable GPU; suggested: scontrol update nodename={NODE} ")
    assert gated.uuid_at(1) in line
    assert not gated.drained()


def test_drain_drains_and_the_job_runs(gated: Gated) -> None:
    """The node takes no further job and says why."""
    gated.mode("drain")
    gated.sim.inject(gated.uuid_at(3), NvmlFault.lost())
    gated.wait_state(3, "lost")
    job = gated.job(4)
    gated.cluster.wait_job(job, "RUNNING")
    wait_until(gated.drained, WAIT_S, "the node to be drained", poll_s=0.5)
    assert gated.reason().startswith(f"gpuwaste: GPU {gated.cluster.nodes[NODE].minors[3]} {gated.uuid_at(3)} gpu_lost")
    assert gated.cluster.job_states(job) == ["RUNNING"]


def test_requeue_holds_the_job_back_and_drains_the_node(gated: Gated) -> None:
    """What Slurm does with a prolog that fails: the node is drained, the job is queued again and held."""
    gated.mode("requeue")
    gated.sim.inject(gated.uuid_at(0), NvmlFault.lost())
    gated.wait_state(0, "lost")
    job = gated.job(4)
    record = gated.held_back(job)
    assert gated.drained()
    assert "Prolog error" in gated.reason()
    assert record["Reason"].startswith("launch_failed_requeued_held")
    assert "is held back" in (gated.jobs_dir / "health-gate").read_text()


def test_requeue_ends_what_cannot_be_queued_again(gated: Gated) -> None:
    """A job with --no-requeue is cancelled, and srun says why it ends, or comes too late and says that it has ended."""
    gated.mode("requeue")
    gated.sim.inject(gated.uuid_at(0), NvmlFault.lost())
    gated.wait_state(0, "lost")
    done = gated.cluster.run(["srun", "-w", NODE, "--gres=gpu:4", "true"], "alice", check=False)
    assert done.returncode != 0
    assert re.search(f"Prolog failure on node {NODE}|already completing or completed", done.stderr), done.stderr
    wait_until(gated.drained, WAIT_S, "the node to be drained", poll_s=0.5)
    gated.cluster.run(["scontrol", "update", f"NodeName={NODE}", "State=RESUME"])
    job = gated.cluster.sbatch("true", "alice", w=NODE, gres="gpu:4", no_requeue=True, output="/dev/null")
    gated.cluster.wait_job(job, "CANCELLED")


def test_a_job_on_sound_gpus_is_not_held_back(gated: Gated) -> None:
    """Three jobs fill the sound GPUs while the fourth GPU is lost; only a job that gets that one is held back."""
    gated.mode("requeue")
    first = [gated.job(1) for _ in range(3)]
    for job in first:
        gated.cluster.wait_job(job, "RUNNING")
    taken = {minor for job in first for minor in gated.minors(job)}
    order = gated.cluster.nodes[NODE].minors
    free = next(position for position, minor in enumerate(order) if minor not in taken)
    gated.sim.inject(gated.uuid_at(free), NvmlFault.lost())
    gated.wait_state(free, "lost")
    gated.cluster.run(["scancel", str(first[0])])
    gated.cluster.wait_job(first[0], "CANCELLED")
    blocker = gated.job(2)
    gated.held_back(blocker)
    assert [gated.cluster.job_states(job) for job in first[1:]] == [["RUNNING"], ["RUNNING"]]


def test_an_xid_counts_until_the_gpus_were_released(gated: Gated) -> None:
    """Xid 79 makes a GPU unusable; after `gpuwaste agent release`, which a reset needs, it is sound again."""
    gated.sim.xid(gated.uuid_at(2), 13)
    gated.sim.xid(gated.uuid_at(2), 79)
    assert gated.wait_state(2, "xid")[5] == "xid_79"
    config = str(gated.site.config_path(NODE))
    argv = gated.site.runtime.command("agent", "release", "--for", "2s", "--config", config)
    gated.cluster.run(argv, "root", env=gated.site.runtime.env)
    gated.wait_state(2, "ok")


def test_without_an_agent_the_gate_opens(gated: Gated) -> None:
    """The agent died with a GPU lost: its word grows old, and then it holds nothing back."""
    gated.mode("requeue")
    gated.sim.inject(gated.uuid_at(0), NvmlFault.lost())
    gated.wait_state(0, "lost")
    gated.site.agents[NODE].kill()
    written = (gated.run_dir / "health").stat().st_mtime
    wait_until(
        lambda: float(gated.cluster.run(["date", "+%s"]).stdout) > written + STALE_S + 1,
        WAIT_S,
        "the file to be stale",
        poll_s=0.5,
    )
    gated.cluster.wait_job(gated.job(4), "RUNNING")
    assert not gated.drained()
