"""The agent's user and its two capabilities: exactly these, what each set of them makes possible, and their page."""

import pwd
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.system.asking import metric, until, wait_ticks
from tests.system.conftest import fresh_site

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.site import AGENT_CAPS, Site, SiteOptions

NUMBERS = {"dac_read_search": 2, "sys_ptrace": 19}  # capability.h
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "capabilities.md"


@pytest.fixture(scope="module")
def site(cluster: LoopbackCluster, native: Path) -> Iterator[Site]:
    """Start a hub and a job of alice that runs throughout; each test starts the agent as it needs it."""
    site = fresh_site(cluster, native, SiteOptions(interval_s=1.0, ship_every_s=2.0))
    site.prepare()
    site.start_hub()
    job = site.submit("alice", "--phase 300:70", w=_node(site), gres="gpu:1")
    cluster.wait_job(job, "RUNNING")
    yield site
    site.stop()
    cluster.reset()


def _node(site: Site) -> str:
    return next(iter(site.nodes))


def _start(site: Site, caps: Sequence[str]) -> None:
    if site.agents:
        site.agents[_node(site)].stop()
    site.start_agent(_node(site), caps=caps)
    until(lambda: bool(metric(site, _node(site), "gpuwaste_gpu_job_info")), "the job to be attributed")
    wait_ticks(site, _node(site), 3)


def _status(site: Site) -> str:
    argv = site.runtime.command("agent", "status", "--config", str(site.config_path(_node(site))))
    return site.cluster.run(argv, "gpuwaste", node=_node(site), env=site.runtime.env).stdout


@pytest.mark.cluster
def test_the_agent_runs_as_its_own_user_with_exactly_two_capabilities(site: Site) -> None:
    """Its four uids are gpuwaste's, its effective set is the two, and no source is silent for lack of rights."""
    _start(site, AGENT_CAPS)
    fields = {}
    for line in Path(f"/proc/{site.agents[_node(site)].pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        fields[name] = value.split()
    assert set(fields["Uid"]) == {str(pwd.getpwnam("gpuwaste").pw_uid)}
    assert int(fields["CapEff"][0], 16) == sum(1 << NUMBERS[name] for name in AGENT_CAPS)
    assert "'environ': 'ok'" in _status(site)
    assert 1.0 in metric(site, _node(site), "gpuwaste_gpu_processes")


@pytest.mark.cluster
@pytest.mark.parametrize("caps", [(), ("sys_ptrace",), ("dac_read_search",)])
def test_with_fewer_the_agent_works_and_says_what_is_silent(site: Site, caps: Sequence[str]) -> None:
    """Without both, the job is still attributed, by the prolog's file, and its process is still known."""
    _start(site, caps)
    assert "needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH" in _status(site)
    assert metric(site, _node(site), "gpuwaste_gpu_job_info") == [1.0]
    assert max(metric(site, _node(site), "gpuwaste_gpu_utilization_ratio")) == pytest.approx(0.7, abs=0.02)
    assert metric(site, _node(site), "gpuwaste_gpu_processes") == [1.0]


def test_the_page_names_each_capability() -> None:
    """docs/how-to/capabilities.md has every capability that the agent is started with, and no other."""
    text = PAGE.read_text(encoding="utf-8")
    for name in AGENT_CAPS:
        assert f"CAP_{name.upper()}" in text
    assert "CAP_SYS_ADMIN" not in text
