"""tools/install-debian-packages with Debian's own apt and dpkg on a database of their own: why it fails is one line."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwaste.testing.patience import patient

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "tools" / "install-debian-packages"
HOLD = """
import fcntl, sys, time

with open(sys.argv[1], "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.readline()
"""
pytestmark = [
    pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt-get on this host: not a Debian"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as apt-get does"),
]


@pytest.fixture
def debian(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which apt and dpkg know no package and their only server is a port without a server."""
    for name in ("lists/partial", "cache/archives/partial", "dpkg/updates", "dpkg/info", "etc/sources.list.d", "log"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "dpkg" / "status").write_text("")
    (tmp_path / "etc" / "sources.list").write_text("deb http://127.0.0.1:1/debian bookworm main\n")
    (tmp_path / "apt.conf").write_text(
        f'Dir::State::lists "{tmp_path}/lists";\nDir::State::status "{tmp_path}/dpkg/status";\n'
        f'Dir::Cache "{tmp_path}/cache";\nDir::Etc::sourcelist "{tmp_path}/etc/sources.list";\n'
        f'Dir::Etc::sourceparts "{tmp_path}/etc/sources.list.d";\nDir::Log "{tmp_path}/log";\n'
        'Acquire::Retries "0";\nAcquire::http::Proxy "DIRECT";\nDebug::NoLocking "false";\n'
    )
    return {**os.environ, "APT_CONFIG": str(tmp_path / "apt.conf"), "DPKG_ADMINDIR": str(tmp_path / "dpkg")}


@contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Hold a lock as a package manager does, in a process of its own, until the end of its input or of the block."""
    argv = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def run(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, *words], env=env, capture_output=True, text=True, timeout=patient(120), check=False)


@pytest.mark.parametrize("lock", ["lists/lock", "dpkg/lock-frontend"])
def test_a_lock_that_is_never_released_is_named_with_its_holder(
    debian: dict[str, str], tmp_path: Path, lock: str
) -> None:
    """It says that it waits, and after its time which process holds the lock; nothing is said of missing packages."""
    with held(tmp_path / lock) as process:
        done = run({**debian, "LOCK_WAIT_S": "2"})
    assert done.returncode == 1
    assert f"waiting for dpkg's lock, which process {process.pid} (" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("install-debian-packages: dpkg's lock is held by process ")
    assert done.stderr.count("\n") == 1


def test_it_goes_on_when_the_lock_is_released(debian: dict[str, str], tmp_path: Path) -> None:
    """A lock that another one holds for a while costs time alone: what ends it here is the network that is missing."""
    env = {**debian, "LOCK_WAIT_S": "90"}
    with (
        held(tmp_path / "lists" / "lock") as holder,
        subprocess.Popen([SCRIPT], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        assert "installing:" in process.stdout.readline()
        assert "waiting for dpkg's lock" in process.stdout.readline()
        holder.kill()
        _, errors = process.communicate(timeout=patient(100))
    assert process.returncode == 1
    assert "lock" not in errors
    assert "Could not connect to 127.0.0.1:1" in errors.splitlines()[-1]


def test_without_network_the_server_is_named(debian: dict[str, str]) -> None:
    """The last line says which server did not answer, not only that a package is unknown."""
    done = run(debian)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("install-debian-packages: apt could not install munge: ")
    assert "127.0.0.1:1" in done.stderr.splitlines()[-1]


def test_a_build_needs_no_server_and_no_browser(debian: dict[str, str]) -> None:
    """The set of packages for a build has rpm and Slurm's headers, and nothing that only tests start."""
    wanted = set(run(debian, "build").stdout.splitlines()[0].removeprefix("installing: ").split())
    everything = set(run(debian).stdout.splitlines()[0].removeprefix("installing: ").split())
    assert {"rpm", "cpio", "lintian", "libslurm-dev", "gcc"} <= wanted < everything
    servers = {"chromium", "firefox-esr", "postgresql", "mariadb-server", "slurmctld", "apache2-bin", "prometheus"}
    assert servers <= everything - wanted


@pytest.mark.parametrize("target", ["rpm", "deb"])
def test_make_installs_the_build_set_alone(target: str) -> None:
    """What make rpm and make deb would run installs the set for a build and no other."""
    argv = ["make", "--dry-run", "--no-print-directory", target]
    lines = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in lines if "install-debian-packages" in line] == ["tools/install-debian-packages build"]


def test_an_unknown_set_is_refused(debian: dict[str, str]) -> None:
    """A set of another name is one line with the names that exist."""
    done = run(debian, "tests")
    assert (done.returncode, done.stderr) == (
        1,
        "install-debian-packages: no set of packages tests: build, demo or test\n",
    )


def test_without_root_it_says_what_it_would_install() -> None:
    """An ordinary user gets one line and exit code 1."""
    # Not below pytest's own folder, which other users may not enter.
    with tempfile.TemporaryDirectory(prefix="gwtest", dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        script = Path(directory) / SCRIPT.name
        shutil.copy(SCRIPT, script)
        env = {"PATH": os.environ["PATH"], "DPKG_ADMINDIR": directory}
        done = subprocess.run(
            [script], env=env, capture_output=True, text=True, timeout=patient(60), check=False, user="nobody"
        )
    assert done.returncode == 1
    assert done.stderr.startswith("install-debian-packages: needs root to install: munge ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("absent", ["", "rpmlint"])
def test_without_dpkg_only_the_commands_of_the_build_are_checked(tmp_path: Path, absent: str) -> None:
    """On a host without dpkg, as Enterprise Linux, nothing is installed; a command that is missing is named."""
    for name in {"bash", "dirname", "readlink", "gcc", "git", "make", "rpmbuild", "rpmlint"} - {absent}:
        found = shutil.which(name)
        (tmp_path / name).symlink_to(found if found is not None else sys.executable)
    argv = [str(tmp_path / "bash"), str(SCRIPT), "build"]
    done = subprocess.run(argv, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert done.returncode == (1 if absent else 0)
    said = "install-debian-packages: no rpmlint: install what docs/how-to/install.md lists for the build host\n"
    assert done.stderr == (said if absent else "")
