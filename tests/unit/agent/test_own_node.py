"""Which node this host is, and what the agent does while Slurm does not say."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwaste.agent.own_node import Stopped, find_own_node, match_node
from gpuwaste.core.agent_config import AgentConfig
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.site_config import CommonConfig
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm

NODES = [
    Node("gpu1", hostname="host-a"),
    Node("gpu2", hostname="host-b.example.org"),
    Node("n3", hostname="host-c"),
    Node("n4", hostname="host-c"),
]


@pytest.mark.parametrize(("hostname", "node"), [("host-a", "gpu1"), ("host-b", "gpu2")])
def test_the_one_node_with_this_hostname_is_taken(hostname: str, node: str) -> None:
    """NodeHostName decides, with or without a domain, also where NodeName is another."""
    assert match_node(FakeSlurm(node_list=NODES), hostname) == node


@pytest.mark.parametrize(("hostname", "words"), [("elsewhere", "no node"), ("host-c", r"several nodes \(n3, n4\)")])
def test_no_node_or_several_refuse_to_start(hostname: str, words: str) -> None:
    """The error says what was found and which setting decides."""
    with pytest.raises(ConfigError, match=f"{words}.*node_name"):
        match_node(FakeSlurm(node_list=NODES), hostname)


def test_what_is_configured_is_not_asked(clock: FakeClock, tmp_path: Path) -> None:
    """With node, cluster and spool directory configured an agent starts while slurmctld is down."""
    config = Config(
        common=replace(CommonConfig(), cluster="gw", slurm_conf=str(tmp_path / "slurm.conf")),
        agent=replace(AgentConfig(), node_name="gpu1", spool_dir="/spool"),
    )
    site = find_own_node(config, FakeSlurm(failure="slurmctld is down"), clock, threading.Event(), EventLog(clock))
    assert (site.cluster, site.node, site.spool_dir, site.slurmd_pid) == ("gw", "gpu1", Path("/spool"), None)
    assert site.slurm_files == (tmp_path / "slurm.conf", tmp_path / "gres.conf")


def test_the_agent_waits_for_slurm_and_can_be_stopped(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    """While Slurm does not answer the agent says so once and asks with growing waits until it is told to stop."""
    stop = threading.Event()
    clock.on_wait = lambda: stop.set() if len(clock.waits) == 6 else None
    config = Config(agent=replace(AgentConfig(), node_name="gpu1"))
    with pytest.raises(Stopped):
        find_own_node(config, FakeSlurm(failure="slurmctld is down"), clock, stop, EventLog(clock))
    assert clock.waits == [5, 10, 20, 40, 60, 60]
    assert [record.message for record in caplog.records] == ["waiting for Slurm: slurmctld is down"]


def test_a_hub_user_that_does_not_exist_is_named() -> None:
    """The user whose signature is to be believed has to exist here."""
    config = Config(agent=replace(AgentConfig(), hub_user="nobody-of-this-name"))
    with pytest.raises(ConfigError, match="hub_user: 'nobody-of-this-name'"):
        daemon_client(config)
