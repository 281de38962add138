"""What a user, a node or a neighbour can try on a real site: hub, agent and advisor as processes beside Slurm."""

import contextlib
import csv
import io
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.system.asking import ended_job, log_lines, metric, wait_ticks
from tests.system.conftest import fresh_site

from gpuwaste.testing.cluster import LoopbackCluster, ManagedProcess
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.process_memory import rss_b
from gpuwaste.testing.running_site import Site, SiteOptions

pytestmark = pytest.mark.cluster

FLOOD = 1500
OWNED = Path(f"/tmp/gpuwaste-owned-{os.getpid()}")  # noqa: S108 a name that nothing else makes
OURS = re.compile(r"\.sock$|/(health|champion)$|/jobs$|/policies\.d(/|$)|\.toml$")
NAMES = (
    "=HYPERLINK(1)",
    "+cmd|' /C calc'!A0",
    "@SUM(1)",
    "\t=1+1",
    "\x1b]0;owned\x07\x1b[2J",
    "a\nERROR hub: forged line\nBcc: all@example.org",
    "\u202egnp.exe\u2066",
    "<script>alert(1)</script>",
    '{a="b"} 1\n# HELP x',
    "../../../etc/passwd",
    f"$(touch {OWNED});`id`",
    "w" * 900,
)


@dataclass(frozen=True)
class Scene:
    """A site with all three daemons, and one job of alice for each hostile name, ended and reported."""

    site: Site
    node: str
    jobs: tuple[int, ...]


@pytest.fixture(scope="module")
def scene(cluster: LoopbackCluster, native: Path) -> Iterator[Scene]:
    site = fresh_site(cluster, native, SiteOptions(interval_s=0.5, ship_every_s=1.0, sacct_every_s=1.0))
    site.options.hub = {"socket": str(site.directory / "hub" / "hub.sock")}
    site.prepare()
    node = next(iter(site.nodes))
    site.start_hub()
    site.start_agent(node)
    site.start_advisor()
    jobs = [site.submit("alice", "--phase 2:50", w=node, gres="gpu:1", job_name=name) for name in NAMES]
    for job in jobs:
        cluster.wait_accounted(job)
        ended_job(site, job, 1, timeout_s=60)
    yield Scene(site, node, tuple(jobs))
    site.stop()
    cluster.reset()


def daemons(scene: Scene) -> dict[str, ManagedProcess]:
    site = scene.site
    assert site.hub is not None
    assert site.advisor is not None
    return {"hub": site.hub, "agent": site.agents[scene.node], "advisor": site.advisor}


def state_directories(scene: Scene) -> list[Path]:
    site = scene.site
    own = site.cluster.nodes[scene.node]
    return [site.directory / "hub", site.directory / "advisor", own.state_dir, own.run_dir]


def as_user(scene: Scene, user: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return scene.site.cluster.run(list(argv), user, check=False)


def test_no_hostile_name_acts_on_whoever_prints_it(scene: Scene) -> None:
    """Each name, given to Slurm by a user, comes out of every form of every command as plain text on its own line."""
    found = set()
    for command in (
        ["report"],
        ["report", "--parsable"],
        ["report", "--csv"],
        ["report", "--json"],
        ["now", "--hours", "1"],
    ):
        out = scene.site.gpuwaste(*command, user="alice", check=False).stdout
        assert [c for c in out.replace("\n", "") if not c.isprintable()] == [], command
        if command[-1] == "--csv":
            rows = [row for row in csv.DictReader(io.StringIO(out)) if row["jobid"] in map(str, scene.jobs)]
            assert len(rows) == len(NAMES)
            assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "@", "\t"))]
            found = {row["name"] for row in rows}
        if command[-1] == "--parsable":
            assert len({line.count("|") for line in out.splitlines()}) == 1
            assert sum(line.split("|")[1] in map(str, scene.jobs) for line in out.splitlines()) == len(NAMES)
    assert {"'=HYPERLINK(1)", "'@SUM(1)"} <= found
    for job in scene.jobs:
        text = scene.site.gpuwaste("job", str(job), user="alice").stdout
        assert [c for c in text.replace("\n", "") if not c.isprintable()] == []


def test_no_hostile_name_makes_a_log_line_or_a_metric(scene: Scene) -> None:
    """Every line of every daemon's log is one that it wrote; no name stands in /metrics, and no command was run."""
    for process in daemons(scene).values():
        lines = log_lines(process)
        assert all(re.match(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) ", line) for line in lines), lines
        assert all(line.isprintable() for line in lines)
    page = "\n".join(pages(scene).values())
    for words in ("HYPERLINK", "alice", "<script", "proj1", "passwd"):
        assert words not in page
    assert not OWNED.exists()


def test_a_user_finds_no_file_of_ours_that_he_can_read_or_change(scene: Scene) -> None:
    """Bob looks through state and run directories: he reads no store, log or outbox, and writes nowhere."""
    roots = [str(path) for path in state_directories(scene)]
    readable = as_user(scene, "bob", "find", *roots, "-type", "f", "-readable").stdout.splitlines()
    assert [path for path in readable if not OURS.search(path)] == []
    writable = as_user(scene, "bob", "find", *roots, "-writable", "!", "-type", "l").stdout.splitlines()
    assert [path for path in writable if not path.endswith(".sock")] == []
    store = scene.site.directory / "hub" / "hub.duckdb"
    assert store.exists()
    assert "Permission denied" in as_user(scene, "bob", "cat", str(store)).stderr
    agent_socket = scene.site.cluster.nodes[scene.node].run_dir / "agent.sock"
    assert agent_socket.stat().st_mode & 0o007 == 0


def test_metrics_on_a_shared_node_name_no_user(scene: Scene) -> None:
    """What any user of the node may read of it: GPUs and job ids, no user, account, name or path."""
    site = scene.site
    job = site.submit("alice", "--phase 60:50", w=scene.node, gres="gpu:1", job_name="secret-name")
    site.cluster.wait_job(job, "RUNNING")
    try:
        wait_ticks(site, scene.node, 3)
        page = pages(scene)["agent"]
        assert f'jobid="{job}"' in page
        for words in ("alice", "secret-name", "proj1", str(site.directory)):
            assert words not in page
        assert set(re.findall(r'[{,](\w+)="', page)) & {"user", "account", "uid"} == set()
    finally:
        site.cluster.run(["scancel", str(job)])
        site.cluster.wait_job(job)


def test_the_hub_s_unix_socket_gives_a_user_his_own_alone(scene: Scene) -> None:
    """Bob on the socket is bob, whatever he claims in a header; alice's job is to him as no job."""
    script = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "s.sendall(('GET /v1/jobs/%s HTTP/1.1\\r\\nHost: h\\r\\nX-Forwarded-User: root\\r\\n'"
        " 'Authorization: Munge x\\r\\nConnection: close\\r\\n\\r\\n' % sys.argv[2]).encode())\n"
        "d = b''\nwhile (p := s.recv(65536)): d += p\nsys.stdout.write(d.decode())\n"
    )
    path = str(scene.site.directory / "hub" / "hub.sock")
    python = str(scene.site.runtime.python)
    hers, none, own = (
        as_user(scene, user, python, "-c", script, path, job).stdout
        for user, job in (("bob", str(scene.jobs[0])), ("bob", "4000000"), ("alice", str(scene.jobs[0])))
    )
    assert hers == none
    assert " 404 " in hers
    assert " 200 " in own


@pytest.mark.parametrize("name", ["hub", "agent", "advisor"])
def test_a_flood_of_connections_leaves_a_daemon_responsive(scene: Scene, name: str) -> None:
    """Fifteen hundred connections that say half a request: others are served, descriptors and memory stay bounded."""
    site = scene.site
    process = daemons(scene)[name]
    ports = {"hub": site.hub_port, "agent": site.exporters[scene.node], "advisor": site.advisor_port}
    before_b = rss_b(process.pid)
    with contextlib.ExitStack() as stack:
        for number in range(FLOOD):
            held = stack.enter_context(socket.socket())
            held.settimeout(20)
            held.connect(("127.0.0.1", ports[name]))
            with contextlib.suppress(OSError):
                held.sendall(b"GET /metrics HTTP/1.1\r\nX: " if number % 2 else b"")
            if number % 500 == 499:
                assert "gpuwaste_build_info" in pages(scene)[name]
        assert open_files(process.pid) < 2048
        assert rss_b(process.pid) - before_b < 200e6
        if name == "agent":
            wait_ticks(site, scene.node, 3)
            assert metric(site, scene.node, "gpuwaste_agent_collector_success") == [1.0, 1.0]
        if name == "hub":
            assert site.as_root().get(f"/v1/jobs/{scene.jobs[0]}")["runs"]
    assert process.alive()
    wait_until(lambda: open_files(process.pid) < 200, 30, "the descriptors to be given back")


def test_strangers_at_the_advisor_s_socket_cost_a_submission_nothing(scene: Scene) -> None:
    """Bob opens connections to it as fast as he can while alice submits: the advisor is still asked, and answers."""
    site = scene.site
    script = (
        "import socket, sys, time\nprint('on', flush=True)\nuntil = time.monotonic() + float(sys.argv[2])\nheld = []\n"
        "while time.monotonic() < until:\n"
        "    s = socket.socket(socket.AF_UNIX); s.setblocking(False)\n"
        "    try: s.connect(sys.argv[1]); held.append(s)\n"
        "    except OSError: held.clear()\n"
        "    if len(held) > 300: held.clear()\n"
    )
    argv = [str(site.runtime.python), "-c", script, str(site.advisor_socket), "4"]
    refused = 'gpuwaste_advisor_requests_total{result="refused"}'
    flood = site.cluster.spawn(argv, user="bob", name="bob-flood")
    try:
        wait_until(lambda: series(scene, "advisor", refused) > 200, 60, "bob to be turned away")
        assert ping(scene) == "pass"
    finally:
        flood.stop()
    assert process_is_sound(daemons(scene)["advisor"])


def test_no_secret_stands_in_a_command_line_or_a_log(scene: Scene) -> None:
    """No munge credential, bearer token or digest is in argv, in the environment, or in what the daemons wrote."""
    secret = re.compile(rb"MUNGE:[A-Za-z0-9+/]{8}|Bearer [A-Za-z0-9]|eyJ[A-Za-z0-9]{8}")
    for process in daemons(scene).values():
        for file in ("cmdline", "environ"):
            assert not secret.search(Path(f"/proc/{process.pid}/{file}").read_bytes())
        assert not secret.search(process.logs[0].read_bytes())


def open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def pages(scene: Scene) -> dict[str, str]:
    """Return /metrics of each daemon, read over a connection of its own."""
    site = scene.site
    ports = {"hub": site.hub_port, "agent": site.exporters[scene.node], "advisor": site.advisor_port}
    found = {}
    for name, port in ports.items():
        with socket.create_connection(("127.0.0.1", port), 20) as sock:
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            said = b""
            while part := sock.recv(65536):
                said += part
            found[name] = said.decode()
    return found


def series(scene: Scene, daemon: str, name: str) -> float:
    lines = pages(scene)[daemon].splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"{name} "))


def ping(scene: Scene) -> str:
    """Ask the advisor as slurmctld's plugin does, and return the action."""
    from gpuwaste.advice.submit_frames import encode_frame  # noqa: PLC0415 the same
    from gpuwaste.testing.lone_advisor import read_reply  # noqa: PLC0415 used here alone

    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(scene.site.advisor_socket))  # waits where strangers fill the queue of connections
        sock.settimeout(20)
        sock.sendall(
            encode_frame({"op": "submit", "via": "c", "uid": 0, "deadline_us": 5_000_000, "job": {"user_id": 0}})
        )
        return str(read_reply(sock)["action"])


def process_is_sound(process: ManagedProcess) -> bool:
    return process.alive() and "Traceback" not in "\n".join(log_lines(process))
