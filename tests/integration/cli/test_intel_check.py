"""The doctor's lines about Intel GPUs: the library, and the capability of the running agent."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwaste.agent.collectors._capabilities import PERFMON, holds
from gpuwaste.cli.check import Role, Status, Surroundings
from gpuwaste.cli.checks import intel
from gpuwaste.core.agent_config import AgentConfig
from gpuwaste.core.config import Config
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.sim_build import build_level_zero, preload_vendor


def lines(state_dir: Path, collectors: tuple[str, ...] = ("intel", "host")) -> list[tuple[Status, str]]:
    """Run the check with an agent of this state directory; the line about groups is of the host that runs the test."""
    config = replace(Config(), agent=AgentConfig(state_dir=str(state_dir), collectors=collectors))
    around = Surroundings(config, Path("/nowhere"), FakeSlurm(), lambda *_: None, "carol", frozenset({Role.AGENT}))
    return [(check.status, check.found) for check in intel.check(around) if "belong to group" not in check.found]


def test_only_where_the_collector_is_configured(tmp_path: Path) -> None:
    """A node without the collector has no line about Intel."""
    assert lines(tmp_path, ("nvml", "host")) == []


@pytest.mark.parametrize("text", ["", "-1\n", "0\n", "no pid", "4294967295\n", "\xff"])
def test_an_agent_that_does_not_run_has_no_line(tmp_path: Path, text: str) -> None:
    """No pid file, an empty one and one that is none say nothing about capabilities."""
    build = build_level_zero()
    if build is None:
        pytest.skip("no zes_api.h on this machine")
    preload_vendor(build, "level_zero")
    loaded = [(Status.OK, "libze_loader.so.1 can be loaded")]
    assert lines(tmp_path) == loaded
    (tmp_path / "agent.pid").write_text(text, encoding="latin-1")
    assert lines(tmp_path) == loaded


def test_an_agent_without_the_capability_is_a_warning(tmp_path: Path) -> None:
    """Without CAP_PERFMON the use is unknown; with it the line is ok."""
    build = build_level_zero()
    if build is None:
        pytest.skip("no zes_api.h on this machine")
    preload_vendor(build, "level_zero")
    drop = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", "--"] if os.geteuid() == 0 else []
    agent = subprocess.Popen([*drop, "sh", "-c", "echo ready; exec sleep 60"], stdout=subprocess.PIPE)
    try:
        assert agent.stdout is not None
        agent.stdout.readline()
        (tmp_path / "agent.pid").write_text(f"{agent.pid}\n")
        assert lines(tmp_path)[-1] == (
            Status.WARN,
            "the agent has no CAP_PERFMON: it cannot read the use of Intel GPUs",
        )
    finally:
        agent.kill()
        agent.wait()
        agent.stdout.close() if agent.stdout else None
    (tmp_path / "agent.pid").write_text(f"{os.getpid()}\n")
    mine = holds(Path("/proc/self/status"), PERFMON)
    assert lines(tmp_path)[-1][0] is (Status.OK if mine else Status.WARN)
