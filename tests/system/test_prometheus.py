"""A real Prometheus scrapes the agent's page and answers the queries that a site's boards ask."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.system.prometheus_server import Prometheus, running

from gpuwaste.agent.agent_exporter import Exporter
from gpuwaste.agent.node_metrics import Health
from gpuwaste.agent.observation import Observation, make_samples
from gpuwaste.agent.readings import GpuAllocation, GpuIdentity, GpuReading, JobMap
from gpuwaste.agent.sampler import CollectorHealth
from gpuwaste.agent.snapshot import LatestSnapshot
from gpuwaste.core.clock import SystemClock

CONFIG = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: gpuwaste
    authorization: {{credentials_file: {token}}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


@pytest.fixture
def jobs() -> JobMap:
    return JobMap((GpuAllocation(77, "GPU-1", 0),))


@pytest.fixture
def exporter(jobs: JobMap, tmp_path: Path) -> Iterator[Exporter]:
    """Serve an observation of two GPUs, the second held by jobs, behind a token."""
    clock, snapshot = SystemClock(), LatestSnapshot()
    gpus = tuple(GpuIdentity(f"GPU-{n}", n, n, name="A100", mem_total_b=40 << 30) for n in range(2))
    readings = {gpu.uuid: GpuReading(gpu.uuid, util_pct=30.0 + gpu.index, energy_mj=1000) for gpu in gpus}
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
    (tmp_path / "token").chmod(0o600)
    served = Exporter("127.0.0.1:0", health, token_file=str(tmp_path / "token"))
    served.start()
    yield served
    served.stop()


@pytest.fixture
def prometheus(exporter: Exporter, tmp_path: Path) -> Iterator[Prometheus]:
    """Run Prometheus on the agent's page."""
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(token=tmp_path / "token", port=exporter.port))
    with running(config) as server:
        yield server


def test_prometheus_scrapes_and_joins_a_job_to_its_gpu(prometheus: Prometheus) -> None:
    """The target is up behind its token, and one join over the info series gives a job's utilization."""
    prometheus.wait_for('up{job="gpuwaste"} == 1', "Prometheus to scrape the agent")
    (joined,) = prometheus.query("gpuwaste_gpu_job_info * on (uuid, node) group_left () gpuwaste_gpu_utilization_ratio")
    assert (joined["metric"]["jobid"], joined["metric"]["uuid"]) == ("77", "GPU-1")
    assert joined["value"][1] == "0.31"
    assert len(prometheus.query("gpuwaste_gpu_memory_total_bytes == 42949672960")) == 2
    (energy,) = prometheus.query('gpuwaste_gpu_energy_joules_total{uuid="GPU-0"}')
    assert energy["value"][1] == "1"
    assert not prometheus.query('{__name__=~"gpuwaste_.*", exported_instance=~".+"}')
    assert not prometheus.query('{__name__=~"gpuwaste_.*", exported_job=~".+"}')


@pytest.mark.parametrize(
    "jobs", [JobMap((GpuAllocation(77, "GPU-1", 0, share=0.5), GpuAllocation(78, "GPU-1", 0, share=0.5)))]
)
def test_the_join_holds_where_jobs_share_a_gpu(prometheus: Prometheus) -> None:
    """Two jobs on one GPU are two series, and no error of many-to-many."""
    prometheus.wait_for('up{job="gpuwaste"} == 1', "Prometheus to scrape the agent")
    joined = prometheus.query("gpuwaste_gpu_job_info * on (uuid, node) group_left () gpuwaste_gpu_utilization_ratio")
    assert {series["metric"]["jobid"] for series in joined} == {"77", "78"}
