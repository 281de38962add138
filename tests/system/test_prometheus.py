"""A real Prometheus scrapes the agent's page and answers the queries that a site's boards ask."""

import json
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.agent.exporter import Exporter
from gpuwaste.agent.metrics import Health
from gpuwaste.agent.model import GpuIdentity, GpuReading, Holding, JobMap
from gpuwaste.agent.observation import Observation, make_samples
from gpuwaste.agent.sampler import CollectorHealth
from gpuwaste.agent.snapshot import Snapshot
from gpuwaste.core.clock import SystemClock
from gpuwaste.testing.cluster_process import wait_until

CONFIG = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: gpuwaste
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[Exporter]:
    """Serve an observation of two GPUs, one held by job 77, behind a token."""
    clock, snapshot = SystemClock(), Snapshot()
    gpus = tuple(GpuIdentity(f"GPU-{n}", n, n, name="A100", mem_total_b=40 << 30) for n in range(2))
    readings = {gpu.uuid: GpuReading(gpu.uuid, util_pct=30.0 + gpu.index, energy_mj=1000) for gpu in gpus}
    jobs = JobMap((Holding(77, "GPU-1", 0),))
    seen = Observation(clock.utc_us(), clock.mono_us(), gpus, readings, jobs=jobs)
    snapshot.accept(replace(seen, samples=tuple(make_samples(seen))))
    health = Health(
        node="gpu1",
        version="1",
        boot_us=clock.utc_us(),
        interval_s=10,
        view=lambda: snapshot.view,
        collectors=lambda: [CollectorHealth("nvml", ok=True, duration_s=0.1)],
        outbox_rows=lambda: 0,
        released_s=lambda: 0.0,
        missed_ticks=lambda: 0,
        now_us=clock.utc_us,
    )
    (tmp_path / "token").write_text("a-token")
    served = Exporter("127.0.0.1:0", health, token_file=str(tmp_path / "token"))
    served.start()
    yield served
    served.stop()


@pytest.fixture
def prometheus(exporter: Exporter, tmp_path: Path) -> Iterator[str]:
    """Run Prometheus on a free port and return its address."""
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus is installed")
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(token=tmp_path / "token", port=exporter.port))
    subprocess.run(["promtool", "check", "config", str(config)], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)
    yield f"http://{address}"
    process.terminate()
    process.wait(30)


def query(address: str, expression: str) -> list[dict[str, Any]]:
    url = f"{address}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 our own server
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found
    except OSError:
        return []  # not up yet


def test_prometheus_scrapes_and_joins_a_job_to_its_gpu(prometheus: str) -> None:
    """The target is up behind its token, and one join over the info series gives a job's utilization."""
    wait_until(lambda: bool(query(prometheus, 'up{job="gpuwaste"} == 1')), 60, "Prometheus to scrape the agent")
    (joined,) = query(
        prometheus, "gpuwaste_gpu_utilization_ratio * on (uuid, node) group_left (jobid) gpuwaste_gpu_job_info"
    )
    assert (joined["metric"]["jobid"], joined["metric"]["uuid"]) == ("77", "GPU-1")
    assert joined["value"][1] == "0.31"
    assert len(query(prometheus, "gpuwaste_gpu_memory_total_bytes == 42949672960")) == 2
    (energy,) = query(prometheus, 'gpuwaste_gpu_energy_joules_total{uuid="GPU-0"}')
    assert energy["value"][1] == "1"
    assert not query(prometheus, '{__name__=~"gpuwaste_.*", exported_instance=~".+"}')
    assert not query(prometheus, '{__name__=~"gpuwaste_.*", exported_job=~".+"}')
