"""From real jobs alone to a prediction, through the commands as a sysadmin and a user type them."""

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ClusterFactory
from tests.system.asking import wait_told

from gpuwaste.jobs.run_changes import job_record
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.store.database import Database
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.job_mix import run_job_mix
from gpuwaste.testing.patience import patient
from gpuwaste.testing.rest_differences import allowed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]  # jobs run, are imported and learnt from
WAVES, JOBS = 3, 100  # what ended in one wave is the history of the next
GPUWASTE = Path(sys.executable).with_name("gpuwaste")
SCRIPT = """#!/bin/bash
#SBATCH --job-name=unstable
#SBATCH --time=60
#SBATCH -n 2
exit 1
"""


def command(config: Path, *words: str | Path) -> str:
    argv = [str(GPUWASTE), *map(str, words), "--config", str(config)]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=patient(400), check=False, env={**os.environ, "COLUMNS": "100"}
    )
    assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def site_of(cluster: LoopbackCluster, folder: Path) -> Path:
    """Write the configuration of a host that learns, with a token for slurmrestd."""
    token = folder / "token"
    token.touch(0o600)
    token.write_text(f"SLURM_JWT={cluster.jwt_token('gpuwaste', 1800)}\n")
    common = {
        "slurm_conf": cluster.env()["SLURM_CONF"],
        "slurmrestd_url": cluster.slurmrestd_url,
        "slurmrestd_token_file": str(token),
        "models_dir": str(folder / "models"),
    }
    config = folder / "gpuwaste.toml"
    config.write_text(to_toml({"common": common}))
    return config


def local_time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ006 the commands take local time


def runs_of(store: Path, ids: set[int]) -> dict[tuple[RunKey, int], JobRecord]:
    database = Database.open(store, "hub")
    rows = database.execute("SELECT * FROM jobs")
    names = [column[0] for column in rows.description or ()]
    jobs = [job_record(dict(zip(names, row, strict=True))) for row in rows.fetchall()]
    database.close()
    return {(job.run_key, job.submit): job for job in jobs if job.job_id in ids}


def test_real_jobs_are_imported_learnt_from_judged_and_predicted(make_cluster: ClusterFactory, tmp_path: Path) -> None:
    """Both ways into the history give equal records but for the written list; the rest works from these alone."""
    cluster = make_cluster(Variant(prolog=(), epilog=()))  # our scripts are most of what hundreds of short jobs cost
    mixes = [run_job_mix(cluster, JOBS, seed=int.from_bytes(os.urandom(2))) for _ in range(WAVES)]
    ids, start, end = {job for mix in mixes for job in mix.ids}, mixes[0].start - 1, mixes[-1].end + 60
    wait_told(CommandClient(slurm_conf=cluster.env()["SLURM_CONF"]), cluster, ids, (start, end))
    config = site_of(cluster, tmp_path)
    period = ("-S", local_time(start), "-E", local_time(end))
    stores = {"--sacct-live": tmp_path / "sacct.duckdb", "--slurmrestd": tmp_path / "rest.duckdb"}
    for source, store in stores.items():
        command(config, "history", "import", source, "--into", store, *period)
    seen, told = (runs_of(store, ids) for store in stores.values())
    assert set(seen) == set(told)
    assert len(seen) >= WAVES * JOBS * 0.9
    for key, run in told.items():
        expected = seen[key]
        wrong = {
            name: (getattr(run, name), getattr(expected, name))
            for name in JobRecord.__dataclass_fields__
            if getattr(run, name) != getattr(expected, name) and name not in allowed(expected, run)
        }
        assert not wrong, run.printed_id

    for store in stores.values():
        _learn(config, store, tmp_path)


def _learn(config: Path, store: Path, folder: Path) -> None:
    registry = folder / f"models-{store.stem}"
    card: dict[str, Any] = json.loads(
        command(config, "model", "train", "--store", store, "--models-dir", registry, "--trials", "1", "--json")
    )
    assert card["targets"]["failure"]
    judged = json.loads(command(config, "model", "evaluate", "--store", store, "--json"))
    assert judged["failure"]["model"]["average_precision"] > judged["failure"]["majority"]["average_precision"]
    script = folder / "job.sbatch"
    script.write_text(SCRIPT)
    bundle = registry / "champion"
    said = json.loads(command(config, "predict", script, "--model", bundle, "--json"))["predictions"]
    (failure,) = [target for target in said[0]["targets"] if target["target"] == "failure"]
    assert 0 <= failure["p"] < 1  # a step of the calibration may be 0
    assert command(config, "predict", script, "--model", bundle).strip()
