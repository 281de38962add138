"""The agent's user and its capabilities, of which there are none: what it can do so, and what it cannot."""

import pwd
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.asking import metric, until, wait_ticks
from tests.system.conftest import fresh_site

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.running_site import Site, SiteOptions

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "capabilities.md"
REACH = """
import sys
for path, mode in (("environ", "rb"), ("mem", "r+b"), ("maps", "rb")):
    try:
        open(f"/proc/{sys.argv[1]}/{path}", mode).read(1)
        print("opened", path)
    except OSError as error:
        print("refused", path)
"""


@pytest.fixture(scope="module")
def site(cluster: LoopbackCluster, native: Path) -> Iterator[Site]:
    """Start a hub, an agent and a job of alice that runs throughout."""
    site = fresh_site(cluster, native, SiteOptions(interval_s=1.0, ship_every_s=2.0))
    site.prepare()
    site.start_hub()
    job = site.submit("alice", "--phase 300:70", w=_node(site), gres="gpu:1")
    cluster.wait_job(job, "RUNNING")
    site.start_agent(_node(site))
    until(lambda: bool(metric(site, _node(site), "gpuwaste_gpu_job_info")), "the job to be attributed")
    wait_ticks(site, _node(site), 3)
    yield site
    site.stop()
    cluster.reset()


def _node(site: Site) -> str:
    return next(iter(site.nodes))


def _credentials(pid: int | str) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.cluster
def test_the_agent_runs_as_its_own_user_without_any_capability(site: Site) -> None:
    """Its four uids are gpuwaste's, its sets are empty, and no source but a cgroup's by nature is silent."""
    fields = _credentials(site.agents[_node(site)].pid)
    assert set(fields["Uid"]) == {str(pwd.getpwnam("gpuwaste").pw_uid)}
    assert {int(fields[name][0], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    argv = site.runtime.command("agent", "status", "--config", str(site.config_path(_node(site))))
    status = site.cluster.run(argv, "gpuwaste", node=_node(site), env=site.runtime.env).stdout
    assert "'prolog': 'ok'" in status
    assert "'sockets': 'ok'" in status
    assert "environ" not in status


@pytest.mark.cluster
def test_without_capabilities_all_is_seen(site: Site) -> None:
    """The job, its GPU's utilization and its process on the GPU, which confirms whose the GPU is."""
    node = _node(site)
    assert metric(site, node, "gpuwaste_gpu_job_info") == [1.0]
    assert max(metric(site, node, "gpuwaste_gpu_utilization_ratio")) == pytest.approx(0.7, abs=0.02)
    assert 1.0 in metric(site, node, "gpuwaste_gpu_processes")


@pytest.mark.cluster
def test_who_has_taken_the_agent_reaches_no_other_process(site: Site) -> None:
    """A program of the agent's user and rights can neither read nor write a process of root's or of a job's user."""
    daemon = site.agents[_node(site)]
    owners = {"0": "1", str(pwd.getpwnam("alice").pw_uid): ""}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            owners |= {uid: entry.name for uid in _credentials(entry.name)["Uid"][:1] if owners.get(uid) == ""}
        except OSError:
            continue
    assert daemon.alive()
    for pid in owners.values():
        answer = site.cluster.run(["python3", "-c", REACH, pid], "gpuwaste", node=_node(site)).stdout
        assert answer.split() == ["refused", "environ", "refused", "mem", "refused", "maps"], (pid, answer)


def test_the_page_names_none_that_the_agent_would_need() -> None:
    """docs/how-to/capabilities.md has no line that gives a capability."""
    assert (
        re.findall(r"(?:ambient-caps|inh-caps|Capabilities)=\S*CAP_|\+sys_ptrace", PAGE.read_text(encoding="utf-8"))
        == []
    )
