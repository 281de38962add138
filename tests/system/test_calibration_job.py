"""`gpuwaste model calibrate` on a real Slurm: its job runs on one GPU, stops at a signal, and goes on."""

import functools
import json
import os
import sys
from pathlib import Path

import pytest

from gpuwaste.estimate.calibrate.calibration_records import progress_of
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def beyond(folder: Path, before: int) -> bool:
    """Tell whether more programs have been measured than before."""
    return progress_of(folder) > before


def told(log: Path) -> str:
    """Return what the job has written."""
    return log.read_text(encoding="utf-8") if log.exists() else f"no {log}"


def calibrate(cluster: LoopbackCluster, folder: Path, python: str) -> int:
    """Submit the job and return its id."""
    words = ["model", "calibrate", "--gpu", "a100-40gb", "--gres", "gpu:a100:1", "--partition", "gpu"]
    words += ["--python", python, "--minutes", "20", "-o", str(folder)]
    done = cluster.run([sys.executable, "-m", "gpuwaste.cli", *words], timeout_s=60)
    line = next(line for line in done.stdout.splitlines() if line.startswith("job "))
    return int(line.split()[1])


def test_a_python_without_a_framework_says_so_in_the_job_s_log(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """The job of a site that named the wrong Python fails at once, with what to do in its log."""
    cluster.reset()
    job = calibrate(cluster, tmp_path / "cal", sys.executable)
    cluster.wait_job(job, "FAILED", timeout_s=60)
    text = (tmp_path / "cal" / f"job-{job}.log").read_text()
    assert "no framework to measure with" in text
    assert "--python" in text


def test_a_job_that_is_stopped_goes_on_where_it_was(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """The signal before its limit ends the job after a program; the same command measures the next ones, none twice."""
    python = os.environ.get("GPUWASTE_JAX_PYTHON")
    if not python:
        pytest.skip("no GPUWASTE_JAX_PYTHON: a Python with jax")
    cluster.reset()
    folder = tmp_path / "cal"
    done = 0
    for _ in range(2):
        job = calibrate(cluster, folder, python)
        before = done
        log = folder / f"job-{job}.log"
        wait_until(
            functools.partial(beyond, folder, before), 240, "a program to be measured", functools.partial(told, log)
        )
        cluster.run(["scancel", "--batch", "--signal=USR1", str(job)])
        cluster.wait_job(job, "FAILED", timeout_s=240)
        text = log.read_text()
        assert f"{before} of 480 programs done" in text
        assert "stopped by signal" in text
        done = progress_of(folder)
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    started = [record["id"] for record in records if record["status"] == "started"]
    ended = [record["id"] for record in records if record["status"] != "started"]
    assert started == ended  # none twice, and none that was cut
    assert len(set(ended)) == done
