"""What goes wrong on a node: unknown time of its true length, nothing lost, nothing doubled."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.asking import ended_job, known_s, log_lines, metric, until, wait_log, wait_ticks
from tests.system.conftest import fresh_site

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.simnvml import NvmlFault

pytestmark = pytest.mark.cluster

INTERVAL_S = 0.5
POLL_S = 1.0  # a test's own look at the clock, beside what the agent does


@pytest.fixture(scope="module")
def site(cluster: LoopbackCluster, native: Path) -> Iterator[Site]:
    """One site for this module: a hub, and agents on both GPU nodes."""
    site = fresh_site(cluster, native, SiteOptions(interval_s=INTERVAL_S, ship_every_s=1.0, sacct_every_s=1.0))
    site.prepare()
    site.start_hub()
    for node in site.nodes:
        site.start_agent(node)
    yield site
    site.stop()
    cluster.reset()


@pytest.fixture
def gpu1(site: Site) -> Iterator[str]:
    """Return a GPU node with a sound driver and an agent that runs, before and after the test."""
    yield from _sound(site, next(iter(site.nodes)))


@pytest.fixture
def gpu2(site: Site) -> Iterator[str]:
    """Return the other GPU node, in the same way."""
    yield from _sound(site, list(site.nodes)[1])


def _sound(site: Site, node: str) -> Iterator[str]:
    if not site.agents[node].alive():
        site.start_agent(node)
    yield node
    site.nodes[node].clear()
    jobs = site.cluster.run(["squeue", "-haro", "%A"]).stdout.split()
    if jobs:
        site.cluster.run(["scancel", *jobs], check=False)


def _run_job(site: Site, node: str, load: str, gpus: int = 1, **options: str | int | bool) -> int:
    job = site.submit("alice", load, w=node, gres=f"gpu:{gpus}", **options)
    site.cluster.wait_job(job, "RUNNING", 30)
    return job


def _end(site: Site, *jobs: int) -> None:
    site.cluster.run(["scancel", *map(str, jobs)])
    for job in jobs:
        site.cluster.wait_accounted(job)


def _restart(site: Site, node: str) -> None:
    site.agents[node].stop()
    site.start_agent(node)


def _near(said: float, truth: float, edges: int = 2) -> bool:
    """Tell whether they agree to an interval for each edge of an outage, and the test's own slowness."""
    return abs(said - truth) <= INTERVAL_S * edges + POLL_S


def test_a_driver_in_trouble_costs_the_time_of_the_trouble_and_says_why(site: Site, gpu1: str) -> None:
    """Lost GPU, driver reset and unloaded, a hanging call, a release: each is unknown time with its own reason."""
    sim = site.nodes[gpu1]
    uuids = sim.uuids()
    job = _run_job(site, gpu1, "--phase 90:50", gpus=4)
    wait_ticks(site, gpu1, 3)
    lost = uuids[min(uuids)]

    began = time.time()
    sim.inject(lost, NvmlFault.lost())
    wait_ticks(site, gpu1, 3)
    sim.clear()
    lost_s = time.time() - began
    wait_ticks(site, gpu1, 2)

    sim.reset_driver()  # found out by one reading, mended by the next
    wait_ticks(site, gpu1, 4)

    began = time.time()
    sim.unload_driver()
    until(lambda: 0.0 in metric(site, gpu1, "gpuwaste_agent_collector_success"), "the collector to fail")
    time.sleep(INTERVAL_S)
    sim.clear()
    until(lambda: 0.0 not in metric(site, gpu1, "gpuwaste_agent_collector_success"), "the collector to work again")
    driver_s = time.time() - began
    wait_ticks(site, gpu1, 2)

    before = sum(metric(site, gpu1, "gpuwaste_agent_samples_total"))
    began = time.time()
    sim.inject(None, NvmlFault.hang("nvmlDeviceGetPowerUsage"))
    until(lambda: metric(site, gpu1, "gpuwaste_agent_sample_lag_seconds")[0] > 3, "the sampling thread to hang")
    assert sum(metric(site, gpu1, "gpuwaste_agent_samples_total")) <= before + 2
    sim.clear()
    wait_ticks(site, gpu1, 1)
    hang_s = time.time() - began
    wait_ticks(site, gpu1, 2)

    began = time.time()
    done = _agent_command(site, gpu1, "release", "--for", "3s")
    assert sim.clients() == []
    assert "3" in done.stdout
    until(lambda: bool(sim.clients()), "NVML to be open again")
    released_s = time.time() - began
    wait_ticks(site, gpu1, 2)

    _end(site, job)
    (run,) = ended_job(site, job, 4)
    for device in run["devices"]:
        unknown = device["unknown_by_reason_s"]
        assert _near(unknown.get("driver", 0), driver_s + 2 * INTERVAL_S, edges=4), (device, driver_s)
        assert _near(unknown.get("gap", 0), hang_s), (device, hang_s)
        assert _near(unknown.get("released", 0), released_s), (device, released_s)
        assert _near(unknown.get("gpu_lost", 0), lost_s if device["gpu_uuid"] == lost else 0), (device, lost_s)
        assert set(unknown) <= {"driver", "gap", "released", "gpu_lost", "unreported"}
        assert _near(device["low_s"] + device["high_s"], 0)  # where the load began within a sample
        assert device["moderate_s"] > 2


def _agent_command(site: Site, node: str, *words: str) -> subprocess.CompletedProcess[str]:
    argv = site.runtime.command("agent", *words, "--config", str(site.config_path(node)))
    return site.cluster.run(argv, "gpuwaste", node=node, env=site.runtime.env)


def test_a_second_agent_on_the_node_refuses_and_names_the_first(site: Site, gpu1: str) -> None:
    """It ends with one line that has the pid of the one that runs; that one goes on."""
    argv = site.runtime.command("agent", "run", "--config", str(site.config_path(gpu1)))
    done = site.cluster.run(argv, "gpuwaste", node=gpu1, env=site.runtime.env, check=False)
    assert done.returncode != 0
    assert len(done.stderr.strip().splitlines()) == 1
    assert f"pid {site.agents[gpu1].pid}" in done.stderr
    wait_ticks(site, gpu1, 1)


def test_garbage_at_the_sockets_is_answered_or_dropped(site: Site, gpu1: str) -> None:
    """Bytes that are no request, half requests and strangers neither stop nor confuse the agent."""
    port = site.exporters[gpu1]
    held = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(4)]
    for garbage in (b"\x00\xff\xfe" * 100 + b"\r\n\r\n", b"GET " + b"/" * 200_000, b"POST / HTTP/9.9\r\n\r\n", b""):
        with socket.create_connection(("127.0.0.1", port), 5) as connection, contextlib.suppress(OSError):
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(4096)
    path = site.cluster.nodes[gpu1].run_dir / "agent.sock"
    for garbage in (
        b"\xff" * 9000,
        b"[1,2]\n",
        b'{"command":7}\n',
        b'{"command":"release","seconds":"x"}\n',
        b"{" * 4000,
    ):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, contextlib.suppress(OSError):
            client.settimeout(5)
            client.connect(str(path))
            client.sendall(garbage)
            assert b'"error"' in client.recv(4096)
    touch = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(path)!r})"
    refused = site.cluster.run([str(site.runtime.python), "-c", touch], "alice", check=False)
    assert "PermissionError" in refused.stderr
    wait_ticks(site, gpu1, 1)
    for connection in held:
        connection.close()
    assert "Traceback" not in "\n".join(log_lines(site.agents[gpu1]))
    assert metric(site, gpu1, "gpuwaste_agent_collector_success") == [1.0, 1.0]


def test_the_library_may_come_after_the_agent(site: Site, gpu2: str, tmp_path: Path) -> None:
    """Without NVML's library at its start the agent runs, says so, and reads the GPUs when it is there."""
    late = site.directory / "late"
    late.mkdir()
    site.agents[gpu2].stop()
    native, site.native = site.native, late
    try:
        site.start_agent(gpu2)
    finally:
        site.native = native
    job = site.submit("alice", "--phase 60:80", w=gpu2, gres="gpu:1")
    site.cluster.wait_job(job, "RUNNING", 30)
    wait_ticks(site, gpu2, 4)
    assert 0.0 in metric(site, gpu2, "gpuwaste_agent_collector_success")
    assert metric(site, gpu2, "gpuwaste_gpu_utilization_ratio") == []
    shutil.copy(native / "libnvidia-ml.so.1", late)
    until(lambda: bool(metric(site, gpu2, "gpuwaste_gpu_utilization_ratio")), "the GPUs to be read")
    wait_ticks(site, gpu2, 6)
    _end(site, job)
    (run,) = ended_job(site, job, 1)
    (device,) = run["devices"]
    assert device["high_s"] >= 1
    assert device["unknown_s"] > 0
    _restart(site, gpu2)


def test_a_full_disk_and_corrupt_files_cost_the_raw_samples_alone(site: Site, gpu2: str) -> None:
    """With no room for raw samples, and an outbox and a day that are garbage, hours still leave; each is said once."""
    state = site.cluster.nodes[gpu2].state_dir
    _restart(site, gpu2)  # its child folds what is there into a day's file
    wait_ticks(site, gpu2, 1)
    site.agents[gpu2].stop()
    assert list((state / "raw").glob("*.duckdb"))
    (state / "outbox.sqlite").write_bytes(b"no database" * 1000)
    for day in (state / "raw").glob("*.duckdb"):
        day.write_bytes(b"no database" * 1000)
    site.start_agent(gpu2)
    wait_ticks(site, gpu2, 2)
    assert (state / "outbox.sqlite.corrupt-1").exists()
    assert list((state / "raw").glob("*.corrupt*"))
    assert wait_log(site.agents[gpu2], "outbox.*corrupt")
    assert wait_log(site.agents[gpu2], "raw samples renamed to .*corrupt")
    site.agents[gpu2].stop()
    lines = len(log_lines(site.agents[gpu2]))
    with _tiny_disk(state / "raw", "gpuwaste"):
        site.start_agent(gpu2)
        job = _run_job(site, gpu2, "--phase 60:100")
        wait_ticks(site, gpu2, 6)
        _end(site, job)
        (run,) = ended_job(site, job, 1)
        said = [line for line in log_lines(site.agents[gpu2])[lines:] if line.startswith(("ERROR", "WARNING"))]
        site.agents[gpu2].stop()
    assert len([line for line in said if "raw" in line]) == 1, said
    (device,) = run["devices"]
    assert device["high_s"] >= 2
    assert device["unknown_s"] <= POLL_S
    site.start_agent(gpu2)


@contextlib.contextmanager
def _tiny_disk(path: Path, user: str) -> Iterator[None]:
    """Mount a file system of 16 KiB that is full."""
    options = "size=16k,mode=0755"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], check=False)
    if done.returncode:
        pytest.skip("no tmpfs may be mounted here")
    try:
        shutil.chown(path, user)
        (path / "filler").write_bytes(bytes(16 << 10))
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_hours_without_the_hub_arrive_once(site: Site, gpu1: str, gpu2: str) -> None:
    """Jobs that begin, run and end while the hub is away are there when it is back, each GPU once."""
    assert site.hub
    site.hub.stop()
    jobs = [site.submit("alice", "--phase 4:70", w=node, gres="gpu:2") for node in (gpu1, gpu2)]
    for job in jobs:
        site.cluster.wait_accounted(job, 40)
    until(lambda: all(sum(metric(site, n, "gpuwaste_agent_outbox_rows")) >= 2 for n in (gpu1, gpu2)), "rows to wait")
    site.start_hub()
    for job in jobs:
        (run,) = ended_job(site, job, 2, timeout_s=60)
        assert len({device["gpu_uuid"] for device in run["devices"]}) == len(run["devices"]) == 2
        for device in run["devices"]:
            assert device["high_s"] >= 2
            assert device["gpu_s"] <= run["end"] - run["start"]


def test_what_slurm_does_to_a_job_is_told_apart(site: Site, gpu2: str) -> None:
    """Suspension, requeue, a restart of slurmd, and an end while the agent is dead: time stands where it belongs."""
    cluster = site.cluster
    stopped, twice, short, steady = (
        _run_job(site, gpu2, load, **options)
        for load, options in (
            ("--phase 90:100", {}),
            ("--phase 90:60", {"requeue": True}),
            ("--phase 9:40", {}),
            ("--phase 90:20", {}),
        )
    )
    wait_ticks(site, gpu2, 2)
    cluster.run(["scontrol", "suspend", str(stopped)])
    suspended = time.time()
    cluster.run(["scontrol", "requeue", str(twice)])
    cluster.restart_slurmd(gpu2)
    wait_ticks(site, gpu2, 2)
    cluster.run(["scontrol", "resume", str(stopped)])
    suspended_s = time.time() - suspended
    dead = time.time()
    site.agents[gpu2].kill()
    cluster.wait_accounted(short)
    site.start_agent(gpu2)
    wait_ticks(site, gpu2, 1)
    dead_s = time.time() - dead
    cluster.wait_job(twice, "RUNNING", 40)
    wait_ticks(site, gpu2, 3)
    _end(site, stopped, twice, steady)

    (run,) = ended_job(site, stopped, 1)
    (device,) = run["devices"]
    assert abs(device["suspended_s"] - suspended_s) <= POLL_S + 2 * INTERVAL_S, device
    assert device["idle_s"] <= POLL_S
    assert _near(device["unknown_s"], dead_s, edges=4), (device, dead_s)

    runs = ended_job(site, twice, 2)
    assert len(runs) == 2
    assert len({run["start"] for run in runs}) == 2
    for run in runs:
        (device,) = run["devices"]
        assert device["moderate_s"] >= 2 * INTERVAL_S - 0.002  # two samples, each cut to whole milliseconds
        assert device["gpu_s"] <= run["end"] - run["start"] + 0.001

    (run,) = ended_job(site, short, 1)
    (device,) = run["devices"]
    assert device["moderate_s"] >= 2
    assert device["unknown_by_reason_s"].get("unreported", 0) + device["unknown_by_reason_s"].get("gap", 0) > 0

    (run,) = ended_job(site, steady, 1)
    (device,) = run["devices"]
    assert _near(device["unknown_s"], dead_s, edges=4), (device, dead_s)
    assert known_s(device) == pytest.approx(device["low_s"], abs=POLL_S)


def test_a_clock_that_steps_makes_time_unknown_and_counts_none_twice(site: Site, gpu1: str) -> None:
    """The wall clock jumps half a minute ahead and back while a job runs."""
    offset = site.directory / "clock"
    _step(offset, 0)
    fake = ["env", f"LD_PRELOAD={site.native / 'libgpuwaste-clock.so'}", f"GPUWASTE_SIM_CLOCK={offset}"]
    site.agents[gpu1].stop()
    site.start_agent(gpu1, prefix=fake)
    job = _run_job(site, gpu1, "--phase 60:100")
    wait_ticks(site, gpu1, 3)
    _step(offset, 30)
    wait_log(site.agents[gpu1], "clock")
    wait_ticks(site, gpu1, 3)
    _step(offset, 0)
    wait_ticks(site, gpu1, 5)
    _end(site, job)
    _restart(site, gpu1)
    (run,) = ended_job(site, job, 1)
    (device,) = run["devices"]
    length = run["end"] - run["start"]
    assert device["gpu_s"] == length
    assert known_s(device) <= length
    assert "clock_step" in device["unknown_by_reason_s"]
    load_began = min(event.t_utc for event in site.oracle() if event.job_id == job)
    assert device["idle_s"] <= max(0, load_began - run["start"]) + POLL_S


def _step(offset: Path, seconds: int) -> None:
    """Set by how much an agent's wall clock is ahead, in place: the file is mapped."""
    with offset.open("r+b" if offset.exists() else "wb") as file:
        file.write(seconds.to_bytes(8, "little", signed=True))
