"""The workers of `make test-all`: each is a host of its own, nothing outlives it, and no worker hides a skip."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwaste.testing import own_host
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient

ROOT = Path(__file__).parents[2]
HOST = (sys.executable, "-m", own_host.__spec__.name)
MARK = "GPUWASTE_TEST_MARK"
LOOK = """
import os, socket
with socket.create_server(("127.0.0.1", 9460)):
    names = socket.getaddrinfo(socket.gethostname(), 1, flags=socket.AI_ADDRCONFIG)
    print(bool(names), sorted(name for name in os.listdir("/proc") if name.isdigit()), flush=True)
    input()
raise SystemExit(7)
"""
LEAVE = """
import subprocess, sys, time
subprocess.Popen(["setsid", "sleep", "600"])
print("up", flush=True)
sys.stdin.read() if sys.argv[1:] else time.sleep(600)
"""
SKIPPED = """
import pytest
def test_known(): pytest.skip("a known reason, and more")
def test_unknown(): pytest.skip("a reason of their own")
"""


@pytest.fixture(autouse=True)
def _needs_namespaces() -> None:
    if os.geteuid() != 0 or not own_host.available():
        pytest.skip("this host gives no namespaces")


def _marked(value: str) -> list[str]:
    """Return the processes that have the mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={value}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_host_has_ports_names_and_processes_of_its_own() -> None:
    """Two Pythons at the same time have the same port and see only themselves; the exit status is the program's."""
    pipe = subprocess.PIPE
    hosts = [subprocess.Popen([*HOST, "-c", LOOK], stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    seen = [host.stdout.readline() for host in hosts if host.stdout]
    assert [host.communicate("\n", timeout=patient(60))[0] for host in hosts] == ["", ""]
    assert seen == ["True ['1', '2']\n"] * 2
    assert [host.returncode for host in hosts] == [7, 7]


@pytest.mark.parametrize("end", ["killed", "its Python ends"])
def test_nothing_outlives_a_host(tmp_path: Path, end: str) -> None:
    """A daemon in a session of its own ends with its host, whichever way that ends."""
    argv = [*HOST, "-c", LEAVE, *(["stdin"] if end != "killed" else [])]
    env = {**os.environ, MARK: str(tmp_path)}
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env) as host:
        assert host.stdout
        assert host.stdout.readline() == "up\n"
        assert len(_marked(str(tmp_path))) >= 3, "unshare, process 1, Python, and the daemon when it has begun"
        if end == "killed":
            host.kill()
    wait_until(lambda: not _marked(str(tmp_path)), 60, "the host to end", lambda: str(_marked(str(tmp_path))))


def test_an_unknown_skip_fails_in_a_worker_too(tmp_path: Path) -> None:
    """With GPUWASTE_SKIPS a skip for another reason than the file's is a failure, and one for the file's is none."""
    (tmp_path / "test_skips.py").write_text(SKIPPED, encoding="utf-8")
    (tmp_path / "skips").write_text("a known reason\n", encoding="utf-8")
    own = [
        "-p",
        "tests.conftest",
        "-c",
        str(ROOT / "pyproject.toml"),
        f"--rootdir={tmp_path}",
        "-p",
        "no:cacheprovider",
    ]
    argv = [sys.executable, "-m", "pytest", "-n", "1", *own, str(tmp_path / "test_skips.py")]
    env = {**os.environ, "GPUWASTE_SKIPS": str(tmp_path / "skips"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False, timeout=patient(170))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 skipped" in done.stdout
    assert "test_unknown was skipped" in done.stdout
