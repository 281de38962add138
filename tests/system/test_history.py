"""The history of a real cluster: through sacct itself, and from a file that sacct wrote in the site's own zone."""

from dataclasses import fields, replace
from pathlib import Path

import pytest
from tests.system.asking import wait_told

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.importers.accounting_windows import AccountingPeriod
from gpuwaste.jobs.importers.bulk_import import import_source
from gpuwaste.jobs.importers.history_store import HistoryStore
from gpuwaste.jobs.importers.sources.sacct import SacctFile, SacctLive
from gpuwaste.jobs.run_changes import job_record
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.job_mix import run_job_mix

pytestmark = [pytest.mark.core, pytest.mark.cluster]
ZONE = "America/St_Johns"  # an offset with half an hour in it
SEPARATOR = "\x1f"


def stored(store: HistoryStore) -> list[JobRecord]:
    rows = store._db.execute("SELECT * FROM jobs ORDER BY job_id, run_start")
    names = [column[0] for column in rows.description or ()]
    return [job_record(dict(zip(names, row, strict=True))) for row in rows.fetchall()]


def _whole(job: JobRecord) -> JobRecord:
    """Return what does not depend on which steps a window lists."""
    plain = JobRecord(**{field.name: getattr(job, field.name) for field in fields(JobRecord)})
    return replace(plain, max_rss_b=None, total_cpu_s=None)


def test_a_real_cluster_through_sacct_and_from_its_file(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """Jobs of many kinds come as accounting tells them, once, in windows of a few seconds; a file gives the same."""
    cluster.reset()
    mix = run_job_mix(cluster, jobs=40, seed=3)
    client = CommandClient(slurm_conf=cluster.env()["SLURM_CONF"])
    end = mix.end + 60
    # What another test's job left in accounting is not of the mix.
    told = {
        key: job for key, job in wait_told(client, cluster, mix.ids, (mix.start, end)).items() if key.job_id in mix.ids
    }
    path = tmp_path / "live.duckdb"
    live = HistoryStore.open(path, SystemClock())
    period = AccountingPeriod(mix.start, end, window_s=7)
    result = import_source(live, path, SacctLive(client, client.cluster_name(), period))
    assert result.bad == 0
    have = {job.run_key: job for job in stored(live) if job.job_id in mix.ids}
    # A window of sacct lists what was eligible before its end: who is cancelled before that may be in none.
    lost = {key for key in told if key not in have}
    assert all(told[key].state == "CANCELLED" and not told[key].elapsed_s for key in lost)
    assert {key: _whole(job) for key, job in have.items()} == {key: _whole(told[key]) for key in have}
    import_source(live, path, SacctLive(client, client.cluster_name(), period))
    assert {job.run_key: job for job in stored(live) if job.job_id in mix.ids} == have

    columns = ",".join(client.accounting_columns())
    words = ["sacct", "-a", "-D", "-P", "--noconvert", f"--delimiter={SEPARATOR}", f"--format={columns}"]
    words += ["-S", "now-1days", "-E", "now+1days"]
    file = tmp_path / "sacct.txt"
    file.write_text(cluster.run(words, env={"TZ": ZONE}).stdout, encoding="utf-8", errors="surrogateescape")
    other = HistoryStore.open(tmp_path / "file.duckdb", SystemClock())
    source = SacctFile(file, client.cluster_name(), delimiter=SEPARATOR, zone=ZONE)
    result = import_source(other, tmp_path / "file.duckdb", source)
    assert result.bad == 0
    assert [_whole(job) for job in stored(other) if job.run_key in have] == [_whole(job) for job in have.values()]
