"""The doctor's lines about the energy of CPUs: which packages there are, and whether the agent may read them."""

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwaste.cli.check import Check, Role, Status, Surroundings
from gpuwaste.cli.checks import rapl
from gpuwaste.cli.checks._hardware_access import Reader, agent_reader
from gpuwaste.core.agent_config import AgentConfig
from gpuwaste.core.config import Config
from gpuwaste.core.hub_config import HubConfig
from gpuwaste.testing.fake_slurm import FakeSlurm

STRANGER = Reader("gpuwaste", 64_999, frozenset({64_998}))
ME = Reader("me", os.getuid(), frozenset({os.getgid()}))


@pytest.fixture
def sys_root(tmp_path: Path) -> Path:
    """Make a node with two packages, parts of one and the board; only their owner may read the counters."""
    names = {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:1": "package-1", "intel-rapl:2": "psys"}
    for folder, name in names.items():
        place = tmp_path / "class" / "powercap" / folder
        place.mkdir(parents=True)
        (place / "name").write_text(f"{name}\n")
        (place / "max_energy_range_uj").write_text("65532610987\n")
        (place / "energy_uj").write_text("7\n")
        (place / "energy_uj").chmod(0o400)
    return tmp_path


def one(sys_root: Path, reader: Reader | None, interval_s: float = 10.0) -> Check:
    """Return the only line."""
    (found,) = rapl.check_tree(sys_root, reader, interval_s)
    return found


def test_packages_are_named_with_who_may_read_them(sys_root: Path) -> None:
    """Packages alone are named; the owner may read them, and so may anybody with the capability to read all files."""
    assert (one(sys_root, ME).status, one(sys_root, ME).found) == (
        Status.OK,
        "package-0, package-1 can be read by me",
    )
    assert one(sys_root, replace(STRANGER, reads_all=True)).status is Status.OK


def test_a_counter_of_root_alone_is_a_warning_with_its_path_and_what_to_do(sys_root: Path) -> None:
    """Path, owner, mode and the reader's name are in the line; the group's right mends it."""
    found = one(sys_root, STRANGER)
    path = sys_root / "class" / "powercap" / "intel-rapl:0" / "energy_uj"
    assert found.status is Status.WARN
    assert found.found.startswith(f"{path} belongs to ")
    assert found.found.endswith(", mode 400: gpuwaste cannot read it")
    assert "how-to Energy" in found.mend
    for counter in sys_root.glob("class/powercap/*/energy_uj"):
        counter.chmod(0o440)
    assert one(sys_root, STRANGER).status is Status.WARN
    assert one(sys_root, replace(STRANGER, gids=frozenset({path.stat().st_gid}))).status is Status.OK


@pytest.mark.parametrize("folder", ["", "class/powercap/intel-rapl"])
def test_a_node_without_counters_says_so(tmp_path: Path, folder: str) -> None:
    """Neither a kernel without powercap nor a tree without packages is a failure."""
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    found = one(tmp_path, ME)
    assert (found.status, "virtual machine" in found.mend) == (Status.WARN, True)


def test_an_interval_that_may_hide_a_wrap_is_a_warning(sys_root: Path) -> None:
    """A counter of 65 kJ may begin again twice in 90 s, and the line says which interval works."""
    ok, late = rapl.check_tree(sys_root, ME, 90.0)
    assert (ok.status, late.status, late.mend) == (Status.OK, Status.WARN, "set [agent] interval_s below 66")
    assert one(sys_root, ME, 60.0).status is Status.OK


def test_the_reader_is_the_running_agent_else_its_configured_user(tmp_path: Path) -> None:
    """The process of agent.pid counts with its groups, without one the user that the hub expects, if there is one."""
    me = pwd.getpwuid(os.geteuid()).pw_name
    config = replace(Config(), agent=AgentConfig(state_dir=str(tmp_path)), hub=HubConfig(agent_user=me))
    by_name = agent_reader(config)
    assert by_name is not None
    assert (by_name.name, by_name.uid) == (me, os.geteuid())
    assert agent_reader(replace(config, hub=HubConfig(agent_user="no such user"))) is None
    (tmp_path / "agent.pid").write_text(f"{os.getpid()}\n")
    running = agent_reader(replace(config, hub=HubConfig(agent_user="no such user")))
    assert running is not None
    assert (running.uid, running.gids) == (os.geteuid(), frozenset({os.getegid(), *os.getgroups()}))


def test_lines_only_where_the_collector_is_configured() -> None:
    """A node without the collector has no line; one without `host` beside it is told that no job gets a part."""
    assert lines(("nvml", "host")) == []
    assert "host" in lines(("nvml", "rapl"))[-1].found
    assert not any("collector host" in check.found for check in lines(("nvml", "host", "rapl")))


def lines(collectors: tuple[str, ...]) -> list[Check]:
    """Run the check of a node with these collectors."""
    config = replace(Config(), agent=AgentConfig(state_dir="/nowhere", collectors=collectors))
    around = Surroundings(config, Path("/nowhere"), FakeSlurm(), lambda *_: None, "carol", frozenset({Role.AGENT}))
    return list(rapl.check(around))
