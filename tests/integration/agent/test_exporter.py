"""/metrics: what is said and what is not, who may read, and who cannot block it."""

import contextlib
import re
import socket
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.self_signed import self_signed
from tests.unit.agent.fakes import START_US, a_gpu

from gpuwaste.agent.agent_exporter import Exporter
from gpuwaste.agent.agent_health import GpuHealth
from gpuwaste.agent.node_metrics import METRICS, Health
from gpuwaste.agent.observation import Observation, make_samples
from gpuwaste.agent.readings import GpuAllocation, GpuReading, JobMap, PackageReading
from gpuwaste.agent.sampler import CollectorHealth
from gpuwaste.agent.snapshot import LatestSnapshot
from gpuwaste.core.errors import ConfigError
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, UnknownReason
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient

GPUS = (a_gpu(0), a_gpu(1, instance="1/0", parent_uuid="GPU-9"), a_gpu(2))
READINGS = {
    "GPU-0": GpuReading("GPU-0", util_pct=25.0, mem_used_b=7, power_mw=1500, energy_mj=2500, sm_ratio=0.5),
    "GPU-1": GpuReading("GPU-1", reason=UnknownReason.MIG),
    "GPU-2": GpuReading("GPU-2", util_pct=0.0),
}
HOLDINGS = (
    GpuAllocation(7, "GPU-0", 0, map_source=MapSource.PROLOG, confidence=Confidence.CONFIRMED),
    GpuAllocation(8, "GPU-2", 0, confidence=Confidence.CONFLICT, reason=UnknownReason.CONFLICT),
)


def an_observation() -> Observation:
    packages = PackageReading(1500.5, 1, 64)
    seen = Observation(START_US, 0, GPUS, READINGS, jobs=JobMap(HOLDINGS), xids={("GPU-0", 79): 2}, packages=packages)
    return replace(seen, samples=tuple(make_samples(seen)))


def a_health(snapshot: LatestSnapshot) -> Health:
    return Health(
        node="gpu1",
        version="1.2",
        boot_us=START_US,
        interval_s=10.0,
        view=lambda: snapshot.view,
        collectors=lambda: [CollectorHealth("nvml", ok=True, duration_s=0.25, failed_total=6)],
        outbox_rows=lambda: 3,
        released_s=lambda: 0.0,
        missed_ticks=lambda: 1,
        invalid_values=lambda: {("nvml", "power", "above"): 2},
        now_us=lambda: START_US + 4_000_000,
        sinks=lambda: {"hours": False, "raw samples": True},
        state_dir=Path("/"),
        gpu_health=lambda: (
            tuple(GpuHealth(gpu.uuid, gpu.minor) for gpu in snapshot.view.seen.gpus) if snapshot.view.seen else ()
        ),
    )


@pytest.fixture
def snapshot() -> LatestSnapshot:
    return LatestSnapshot()


@pytest.fixture
def serve(snapshot: LatestSnapshot) -> Iterator[Callable[..., Exporter]]:
    """Return a function that starts an exporter on a free port."""
    made: list[Exporter] = []

    def start(**options: Any) -> Exporter:
        made.append(Exporter("127.0.0.1:0", a_health(snapshot), **options))
        made[-1].start()
        return made[-1]

    yield start
    for exporter in made:
        exporter.stop()


def scrape(exporter: Exporter, **headers: str) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{exporter.port}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=patient(10)) as answer:  # noqa: S310 our own server
        return str(answer.read().decode())


def series(text: str) -> dict[str, float]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_before_the_first_sample_there_are_no_values_of_gpus(serve: Callable[..., Exporter]) -> None:
    """An agent that has just started tells of itself and leaves out what it has not read."""
    found = series(scrape(serve()))
    assert found["gpuwaste_agent_samples_total"] == 0
    assert not [name for name in found if name.startswith(("gpuwaste_gpu_", "gpuwaste_cpu_")) or "lag" in name]


def test_values_are_in_base_units_and_unread_ones_absent(
    serve: Callable[..., Exporter], snapshot: LatestSnapshot
) -> None:
    """Percent, milliwatts and millijoules become ratio, watts and joules; None is absent, 0 is 0."""
    snapshot.accept(an_observation())
    found = series(scrape(serve()))
    gpu = '{node="gpu1",uuid="GPU-%d"}'
    assert found["gpuwaste_gpu_utilization_ratio" + gpu % 0] == 0.25
    assert found["gpuwaste_gpu_utilization_ratio" + gpu % 2] == 0.0
    assert "gpuwaste_gpu_utilization_ratio" + gpu % 1 not in found
    assert found["gpuwaste_gpu_power_watts" + gpu % 0] == 1.5
    assert found["gpuwaste_gpu_energy_joules_total" + gpu % 0] == 2.5
    assert found["gpuwaste_gpu_memory_used_bytes" + gpu % 0] == 7
    assert found['gpuwaste_cpu_energy_joules_total{node="gpu1"}'] == 1500.5
    assert found['gpuwaste_gpu_xid_errors_total{node="gpu1",uuid="GPU-0",xid="79"}'] == 2
    assert found["gpuwaste_agent_sample_lag_seconds"] == 4
    assert found["gpuwaste_agent_outbox_rows"] == 3
    assert found['gpuwaste_agent_collector_duration_seconds{collector="nvml"}'] == 0.25
    assert found['gpuwaste_agent_collector_failures_total{collector="nvml"}'] == 6
    assert found['gpuwaste_agent_unattributed_samples_total{reason="conflict"}'] == 1
    assert found['gpuwaste_agent_sink_success{sink="hours"}'] == 0
    assert found["gpuwaste_clock_seconds"] == START_US / 1e6 + 4
    assert 0 < found["gpuwaste_state_free_bytes"] <= found["gpuwaste_state_size_bytes"]


def test_one_info_series_joins_a_job_to_its_gpu(serve: Callable[..., Exporter], snapshot: LatestSnapshot) -> None:
    """The job's id stands in one series per holding alone; no label is called job, instance or user."""
    snapshot.accept(an_observation())
    text = scrape(serve())
    with_job = [line for line in text.splitlines() if 'jobid="7"' in line]
    assert with_job == [
        'gpuwaste_gpu_job_info{confidence="confirmed",jobid="7",map_source="prolog",node="gpu1",uuid="GPU-0"} 1.0'
    ]
    assert not {"job", "instance", "user"} & set(re.findall(r'[{,](\w+)="', text))


def test_promtool_finds_nothing_to_say(serve: Callable[..., Exporter], snapshot: LatestSnapshot) -> None:
    """`promtool check metrics` accepts the page without a remark."""
    snapshot.accept(an_observation())
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=scrape(serve()), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_table_is_complete(serve: Callable[..., Exporter], snapshot: LatestSnapshot) -> None:
    """Every declared metric is served once something was read, with its declared labels and help."""
    snapshot.accept(an_observation())
    snapshot.accept(replace(an_observation(), mono_us=10_000_000))
    text = scrape(serve())
    for spec in METRICS:
        if spec.name in {"gpuwaste_gpu_power_limit_watts", "gpuwaste_gpu_processes"}:
            continue  # nothing of them in this observation
        assert f"# HELP {spec.name} {spec.text}" in text


def test_a_lost_gpu_is_told(snapshot: LatestSnapshot) -> None:
    """0 for it, 1 for a sound one."""
    states = (GpuHealth("GPU-a", 0), GpuHealth("GPU-b", 1, "lost", 1, "gpu_lost"))
    health = replace(a_health(snapshot), gpu_health=lambda: states)
    spec = next(spec for spec in METRICS if spec.name == "gpuwaste_gpu_healthy")
    assert list(spec.rows(health, snapshot.view)) == [
        (("GPU-a", "gpu1", "ok"), 1.0),
        (("GPU-b", "gpu1", "lost"), 0.0),
    ]


def test_a_token_is_asked_for(serve: Callable[..., Exporter], tmp_path: Path) -> None:
    """With a token file a scrape without the token, or with another, gets 401 and no metric."""
    (tmp_path / "token").write_text("s3cret\n")
    (tmp_path / "token").chmod(0o640)
    exporter = serve(token_file=str(tmp_path / "token"))
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer s3cret2"}):
        with pytest.raises(urllib.error.HTTPError, match="401") as refusal:
            scrape(exporter, **headers)
        assert b"gpuwaste_" not in refusal.value.read()
    assert "gpuwaste_build_info" in scrape(exporter, Authorization="Bearer s3cret")


def test_tls_is_spoken_where_a_certificate_is_given(serve: Callable[..., Exporter], tmp_path: Path) -> None:
    """With a certificate the page is served over TLS, also while a client that speaks none hangs on."""
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    self_signed(cert, key)
    exporter = serve(tls_cert=str(cert), tls_key=str(key))
    with socket.create_connection(("127.0.0.1", exporter.port)):
        context = ssl.create_default_context(cafile=str(cert))
        url = f"https://127.0.0.1:{exporter.port}/metrics"
        with urllib.request.urlopen(url, context=context, timeout=patient(10)) as answer:
            assert b"gpuwaste_build_info" in answer.read()


def test_other_paths_and_garbage_do_no_harm(serve: Callable[..., Exporter]) -> None:
    """An unknown path is 404; a client that sends garbage or hangs up leaves the next scrape unharmed."""
    exporter = serve()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/", timeout=patient(10))
    for garbage in (b"", b"\x16\x03\x01\xff\xff", b"GET " + b"/" * 100_000):
        with socket.create_connection(("127.0.0.1", exporter.port)) as client:
            client.sendall(garbage)
    assert "gpuwaste_build_info" in scrape(exporter)


def test_a_token_that_everybody_can_read_is_refused(serve: Callable[..., Exporter], tmp_path: Path) -> None:
    """On a shared node such a token would keep no user from other users' job ids."""
    (tmp_path / "token").write_text("s3cret\n")
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(ConfigError, match=r"metrics_token_file: .*everybody can read"):
        serve(token_file=str(tmp_path / "token"))


@pytest.mark.parametrize("beginning", [b"", b"GET /metrics HTTP/1.1\r\nX: "], ids=["silent", "half a head"])
def test_silent_connections_keep_no_scrape_waiting(serve: Callable[..., Exporter], beginning: bytes) -> None:
    """Three hundred connections that say nothing: scrapes are answered, and threads and descriptors stay bounded."""
    exporter = serve()
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(300):
            held.append(stack.enter_context(socket.create_connection(("127.0.0.1", exporter.port), 20)))
            held[-1].sendall(beginning)
            if len(held) % 100 == 0:
                assert "gpuwaste_build_info" in scrape(exporter)
        wait_until(lambda: threading.active_count() <= before + 2 * 65, 60, "the threads to end")
        with contextlib.suppress(ConnectionResetError):
            assert held[0].recv(1) == b""


@pytest.mark.parametrize(
    ("listen", "options"),
    [
        ("nonsense", {}),
        ("127.0.0.1:99999", {}),
        ("127.0.0.1:0", {"token_file": "/nonexistent"}),
        ("127.0.0.1:0", {"tls_cert": "/nonexistent"}),
    ],
)
def test_what_cannot_be_served_is_a_configuration_error(
    snapshot: LatestSnapshot, listen: str, options: dict[str, Any]
) -> None:
    """An address, token or certificate that cannot be used is one clear error at the start."""
    with pytest.raises(ConfigError, match=r"\[agent\]"):
        Exporter(listen, a_health(snapshot), **options)
