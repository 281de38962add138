"""`gpuwaste doctor` and the services' signs of life on a real site: a healthy one is well, planted faults are named."""

import contextlib
import json
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import _end, _new_cluster
from tests.system.asking import filtered
from tests.unit.notify_socket import notify_socket, said

from gpuwaste.testing.cluster import LoopbackCluster, ManagedProcess, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import build_native, library_env
from gpuwaste.testing.submit_plugins import build_plugins

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]  # a site, and a daemon that restarts for each fault
CONTROLLER = ("hub", "advisor")
PLUGIN = "job_submit_gpuwaste.so"
OTHER = 'char plugin_type[] = "job_submit/gpuwaste"; unsigned plugin_version = 0x170b05;'
WATCHDOG_US = 800_000


class Scene:
    """The running site of this module, and the doctor on it."""

    def __init__(self, site: Site, plugins: Path) -> None:
        self.site = site
        self.cluster = site.cluster
        self.plugins = plugins
        self.node = next(iter(site.nodes))

    def doctor(self, *words: str, name: str = "hub", prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run it as root with the configuration of a node or of the controller's host."""
        argv = [*prefix, *self.site.runtime.command("doctor", *words, "--config", str(self.site.config_path(name)))]
        env = {**self.site.runtime.env, **library_env(self.site.native)}
        node = None if name == "hub" else name
        return self.cluster.run(argv, node=node, env=env, check=False, timeout_s=60)

    def counted(self) -> list[str]:
        """Return what the advisor has counted of requests."""
        url = f"http://127.0.0.1:{self.site.advisor_port}/metrics"
        with urllib.request.urlopen(url, timeout=patient(20)) as answer:
            lines = answer.read().decode().splitlines()
        return [line for line in lines if line.startswith("gpuwaste_advisor_requests_total")]

    def lines(self, *roles: str, name: str = "hub", prefix: tuple[str, ...] = ()) -> dict[str, dict[str, Any]]:
        """Return the lines by name."""
        words = [word for role in roles for word in ("--role", role)]
        done = self.doctor("--json", *words, name=name, prefix=prefix)
        assert not done.stderr, done.stderr
        return {line["name"]: line for line in json.loads(done.stdout)["checks"]}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Start a cluster whose slurmctld has the plugin, with hub, advisor and one agent as their units filter them."""
    native, built = build_native(), build_plugins("c")
    plugins = Path("/tmp") / tmp_path_factory.mktemp("plugins").name  # noqa: S108 SlurmUser must be able to read it
    shutil.rmtree(plugins, ignore_errors=True)
    plugins.mkdir(mode=0o755)
    shutil.copy(built / PLUGIN, plugins / PLUGIN)
    cluster: LoopbackCluster = _new_cluster(Variant(job_submit="gpuwaste", plugin_dir=str(plugins)))
    cluster.start()
    site = Site(cluster, native, SiteOptions(interval_s=1.0, ship_every_s=2.0))
    try:
        site.prepare()
        site.start_hub(prefix=filtered(site, "hub"))
        site.start_agent(next(iter(site.nodes)), prefix=filtered(site, "agent"))
        site.start_advisor(prefix=filtered(site, "advisor"))
        yield Scene(site, plugins)
    finally:
        site.stop()
        _end(cluster)
        shutil.rmtree(plugins, ignore_errors=True)


@pytest.mark.core
def test_a_healthy_controller_has_no_fault(scene: Scene) -> None:
    """Plugin, advisor, history, hub, clock, sockets, munge and policies are all well, and the exit code is 0."""
    found: dict[str, dict[str, Any]] = {}

    def settled() -> bool:
        found.update(scene.lines(*CONTROLLER))
        return found["history"]["status"] == "ok" and found.get("account", {}).get("status") == "ok"

    wait_until(settled, 60, "the history to be known", lambda: json.dumps(found, indent=1), poll_s=1.0)
    well = ("version", "config", "munge", "run dir", "advisor.sock", "plugin", "advisor", "policies", "hub", "clock")
    assert {name: found[name]["status"] for name in well} == dict.fromkeys(well, "ok"), list(found.values())
    assert not [line for line in found.values() if line["status"] == "fail"]
    assert found["plugin"]["found"].endswith("built for Slurm 22.05.8") or "built for Slurm" in found["plugin"]["found"]
    counted = scene.counted()
    assert scene.doctor("--role", "hub", "--role", "advisor").returncode == 0
    assert scene.counted() == counted


@pytest.mark.core
def test_a_healthy_node_has_no_fault_and_is_known_as_one(scene: Scene) -> None:
    """Without --role the node is an agent by its state; the agent is asked, and its map has no conflict."""
    done = scene.doctor("--json", name=scene.node)
    document = json.loads(done.stdout)
    assert "agent" in document["roles"]
    found = {line["name"]: line for line in document["checks"]}
    status = Path(f"/proc/{scene.site.agents[scene.node].pid}/status").read_text(encoding="ascii")
    if shutil.which("systemd-analyze"):
        assert "Seccomp:\t2" in status
    well = ("agent", "map", "agent.sock", "nvml", "spool", "hub", "clock")
    assert {name: found[name]["status"] for name in well} == dict.fromkeys(well, "ok"), list(found.values())


@pytest.mark.core
def test_a_job_is_attributed_under_the_units_filters(scene: Scene) -> None:
    """With a job of alice's the map has it without conflict; no daemon was refused a call."""
    job = scene.site.submit("alice", "--phase 300:70", w=scene.node, gres="gpu:1")
    scene.cluster.wait_job(job, "RUNNING")
    found: dict[str, dict[str, Any]] = {}

    def attributed() -> bool:
        found.update(scene.lines("agent", name=scene.node))
        return bool(found["map"]["found"] == "1 jobs, no conflict")

    try:
        wait_until(attributed, 60, "the job to be attributed", lambda: json.dumps(found, indent=1), poll_s=1.0)
        assert found["rights"]["found"].endswith("such as alice")
    finally:
        scene.cluster.run(["scancel", str(job)])
    for name in ("hub", "advisor", f"agent-{scene.node}"):
        log = (scene.cluster.directory / "log" / f"{name}.out").read_text(encoding="utf-8")
        assert "not permitted" not in log, log


def test_planted_faults_each_have_their_line(scene: Scene) -> None:
    """A closed socket, the kill switch, a plugin of another release and a missing one; mended, they are gone."""
    sock, switch, plugin = scene.site.advisor_socket, scene.site.kill_switch, scene.plugins / PLUGIN
    sock.chmod(0o600)
    switch.touch()
    kept = plugin.rename(plugin.with_suffix(".kept"))
    subprocess.run(["cc", "-shared", "-o", str(plugin), "-x", "c", "-"], input=OTHER, text=True, check=True)
    try:
        found = scene.lines(*CONTROLLER)
        assert found["advisor.sock"]["found"].endswith("has mode 0600, not 0666")
        assert found["switch"]["status"] == "warn"
        assert "was built for Slurm 23.11.5, slurmctld is" in found["plugin"]["found"]
        plugin.unlink()
        found = scene.lines(*CONTROLLER)
        assert f"{PLUGIN} is not in PluginDir=" in found["plugin"]["found"]
        nagios = scene.doctor("--nagios", "--role", "advisor")
        assert nagios.returncode == 2
        assert nagios.stdout.startswith("GPUWASTE CRITICAL - ")
        assert nagios.stdout.count("\n") == 1
        assert "'history_age_s'=" in nagios.stdout
    finally:
        sock.chmod(0o666)
        switch.unlink()
        kept.rename(plugin)
    assert {scene.lines(*CONTROLLER)[name]["status"] for name in ("advisor.sock", "plugin")} == {"ok"}


def test_a_clock_that_is_wrong_has_its_line(scene: Scene) -> None:
    """A host ten minutes ahead of the hub is told how far, and that credentials are refused."""
    if shutil.which("faketime") is None:
        pytest.skip("faketime is not installed")
    clock = scene.lines("login", prefix=("faketime", "-f", "+600s"))["clock"]
    assert clock["status"] == "fail"
    assert clock["figures"]["clock_skew_s"] == pytest.approx(-600, abs=30)


def test_a_dead_advisor_and_a_standing_one_are_told_apart(scene: Scene) -> None:
    """A stopped process does not answer within the deadline; a killed one refuses at once. Neither hangs the doctor."""
    advisor = scene.site.advisor
    assert advisor is not None
    advisor.signal(signal.SIGSTOP)
    assert scene.lines("advisor")["advisor"]["status"] == "fail"
    advisor.signal(signal.SIGCONT)
    advisor.signal(signal.SIGKILL)
    wait_until(lambda: not advisor.alive(), 30, "the advisor to end")
    assert "refused" in scene.lines("advisor")["advisor"]["found"]
    scene.site.start_advisor()
    assert scene.lines("advisor")["advisor"]["status"] == "ok"


@contextlib.contextmanager
def listening(scene: Scene, name: str) -> Iterator[tuple[socket.socket, tuple[str, ...]]]:
    """Give a socket in systemd's place, and the command that starts a daemon with it."""
    directory = scene.cluster.directory / f"{name}.notify"
    directory.mkdir()
    with notify_socket(directory, 60) as sock:
        path = directory / "notify"
        path.chmod(0o666)
        yield sock, ("env", f"NOTIFY_SOCKET={path}", f"WATCHDOG_USEC={WATCHDOG_US}")


def stands_still(process: ManagedProcess, sock: socket.socket) -> None:
    """Stop the process and see that no sign of life comes in three times the watchdog's time; then let it go on."""
    process.signal(signal.SIGSTOP)
    stat = Path(f"/proc/{process.pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", 30, "the process to stand still")
    said(sock)
    time.sleep(3 * WATCHDOG_US / 1e6)
    assert said(sock) == []
    process.signal(signal.SIGCONT)
    assert sock.recv(4096) == b"WATCHDOG=1"


def test_systemd_hears_the_agent(scene: Scene) -> None:
    """READY=1 after the first sample, signs of life from the sampling thread, none while it stands, STOPPING=1."""
    scene.site.agents[scene.node].stop()
    with listening(scene, "agent") as (sock, prefix):
        agent = scene.site.start_agent(scene.node, prefix=prefix)
        assert sock.recv(4096).decode().startswith(f"READY=1\nSTATUS=node {scene.node} of cluster ")
        assert sock.recv(4096) == b"WATCHDOG=1"
        stands_still(agent, sock)
        agent.signal(signal.SIGHUP)
        agent.wait_for(lambda: "configuration: nothing has changed" in agent.tail(), 30, "the configuration")
        agent.stop()
        assert "STOPPING=1\nSTATUS=stopping" in said(sock)
    scene.site.start_agent(scene.node)


def test_systemd_hears_the_advisor(scene: Scene) -> None:
    """READY=1 when it answers, signs of life from its loop, RELOADING=1 and READY=1 around SIGHUP, STOPPING=1."""
    assert scene.site.advisor is not None
    scene.site.advisor.stop()
    with listening(scene, "advisor") as (sock, prefix):
        advisor = scene.site.start_advisor(prefix=prefix)
        words = [sock.recv(4096).decode() for _ in range(2)]
        assert f"READY=1\nSTATUS=answers on {scene.site.advisor_socket}" in words
        stands_still(advisor, sock)
        advisor.signal(signal.SIGHUP)
        heard: list[str] = []
        while not any(word.startswith("READY=1") for word in heard):
            heard.append(sock.recv(4096).decode())
        assert any(word.startswith("RELOADING=1\nMONOTONIC_USEC=") for word in heard)
        advisor.stop()
        assert "STOPPING=1\nSTATUS=stopping" in said(sock)
    scene.site.start_advisor()
