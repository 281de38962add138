"""Files and directories that somebody prepared for a daemon: it refuses them in one line, or its own stay untouched."""

import getpass
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.daemon_config import free_port, to_toml
from gpuwaste.testing.lone_advisor import LoneAdvisor
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged
from gpuwaste.testing.patience import patient

pytestmark = [
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user"),
]
NOBODY = 65534


def everybody_writes(path: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def a_stranger_made_it(path: Path) -> None:
    path.mkdir()
    os.chown(path, NOBODY, NOBODY)


def a_link_to_a_stranger(path: Path) -> None:
    a_stranger_made_it(path.with_name("his"))
    path.symlink_to(path.with_name("his"))


def a_parent_of_everybody(path: Path) -> None:
    everybody_writes(path.parent / "open")
    path.symlink_to(path.parent / "open" / "inner")
    (path.parent / "open" / "inner").mkdir()


def a_file(path: Path) -> None:
    path.touch()


TRICKS: list[Callable[[Path], None]] = [
    everybody_writes,
    a_stranger_made_it,
    a_link_to_a_stranger,
    a_parent_of_everybody,
    a_file,
]


@pytest.fixture(scope="module")
def munge() -> Iterator[str]:
    with private_munged() as path:
        yield path


def run_daemon(name: str, directory: Path, munge: str, **places: Path) -> subprocess.CompletedProcess[str]:
    """Run a daemon that is expected to refuse to start."""
    conf = directory / "slurm.conf"
    conf.write_text("this is no slurm.conf\n", encoding="ascii")
    state, run = places.get("state", directory / "state"), places.get("run", directory / "run")
    sections = {
        "common": {"cluster": "gw", "munge_socket": munge, "slurm_conf": str(conf), "run_dir": str(run)},
        "hub": {"listen": f"127.0.0.1:{free_port()}", "state_dir": str(state), "agent_user": getpass.getuser()},
        "agent": {"state_dir": str(state), "listen": "", "node_name": "gpu1"},
        "advisor": {"state_dir": str(state), "socket": str(run / "advisor.sock"), "slurm_user": "root", "listen": ""},
    }
    config = directory / "gpuwaste.toml"
    config.write_text(to_toml(sections), encoding="utf-8")
    argv = [sys.executable, "-m", "gpuwaste.cli", name, "run", "--config", str(config)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=patient(60), check=False)


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: trick.__name__)
@pytest.mark.parametrize(
    ("daemon", "place"),
    [("hub", "state"), ("agent", "state"), ("agent", "run"), ("advisor", "state"), ("advisor", "run")],
)
def test_a_daemon_trusts_no_directory_of_others(
    tmp_path: Path, munge: str, daemon: str, place: str, trick: Callable[[Path], None]
) -> None:
    """One line that names the key and the directory, exit code 2, and nothing is written there."""
    trick(tmp_path / place)
    done = run_daemon(daemon, tmp_path, munge, **{place: tmp_path / place})
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(tmp_path / place) in done.stderr
    assert "Traceback" not in done.stderr
    there = tmp_path / place
    assert not there.is_dir() or list(there.iterdir()) == []


def test_what_a_hub_writes_is_closed(tmp_path: Path, munge: str) -> None:
    """Started by hand, without systemd and its umask: no file of the store can be read or changed by others."""
    before = os.umask(0)
    hub = LoneHub(tmp_path, munge)
    try:
        hub.start()
        found = list((tmp_path / "state").rglob("*"))
        assert any(path.name == "hub.duckdb" for path in found)
        assert [path for path in (tmp_path / "state", *found) if path.stat().st_mode & stat.S_IRWXO] == []
        assert [path for path in found if path.is_file() and path.stat().st_mode & stat.S_IWGRP] == []
    finally:
        hub.stop()
        os.umask(before)


def test_what_an_advisor_writes_is_closed_but_for_its_socket(munge: str, tmp_path: Path) -> None:
    """The socket is open to all, for the kernel tells who asks; spool, outbox and history are not."""
    (tmp_path / "policies.d").mkdir()
    before = os.umask(0)
    advisor = LoneAdvisor(tmp_path, "http://127.0.0.1:9", munge)
    try:
        advisor.start()
        advisor.ask({"user_id": 0, "name": "train"})
        found = [advisor.state, *advisor.state.rglob("*")]
        assert [path for path in found if path.stat().st_mode & stat.S_IRWXO] == []
        assert stat.S_IMODE(advisor.path.stat().st_mode) == 0o666
    finally:
        advisor.stop()
        os.umask(before)


def test_a_link_or_file_in_a_socket_s_place_is_left_alone(tmp_path: Path, munge: str) -> None:
    """The advisor neither follows a link to another socket nor removes a file: it says what is there."""
    for number, kind in enumerate(("link", "file", "hard link")):
        run = tmp_path / f"run{number}"
        run.mkdir()
        precious = tmp_path / f"precious{number}"
        precious.write_text("precious", encoding="ascii")
        place = run / "advisor.sock"
        if kind == "link":
            place.symlink_to(precious)
        elif kind == "hard link":
            place.hardlink_to(precious)
        else:
            place.write_text("precious", encoding="ascii")
        done = run_daemon("advisor", tmp_path, munge, run=run, state=tmp_path / f"state{number}")
        assert done.returncode == 2, done.stderr
        assert "exists but is not a socket" in done.stderr
        assert precious.read_text(encoding="ascii") == "precious"
        assert place.exists()


def test_links_in_the_place_of_the_agent_s_files_are_not_written_through(tmp_path: Path) -> None:
    """A link where the agent puts its health file or its socket is replaced; what it leads to stays as it was."""
    precious = tmp_path / "precious"
    precious.write_text("precious", encoding="ascii")
    run = tmp_path / "run"
    run.mkdir()
    for name in (".health.new", "health", "agent.sock"):
        (run / name).symlink_to(precious)
    code = (
        "import sys; from pathlib import Path; from types import SimpleNamespace as N\n"
        "from gpuwaste.agent.control_socket import ControlServer; from gpuwaste.agent.agent_health import HealthSink\n"
        "run = Path(sys.argv[1])\n"
        "HealthSink(run, N(size=0), frozenset())._write(1)\n"
        "c = ControlServer(run, {}); c.start(); sys.stdin.read(); c.stop()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(run)], stdin=subprocess.PIPE) as process:
        try:
            wait_until((run / "agent.sock").is_socket, 60, "the socket")
        finally:
            process.communicate(timeout=patient(20))
    assert (run / "health").is_file()
    assert not (run / "health").is_symlink()
    assert precious.read_text(encoding="ascii") == "precious"
