"""Energy in `gpuwaste simulate`: what agents measured, what a change frees; absent where nothing was measured."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.test_simulate import ROWS, simulated, swf
from tests.integration.cli.test_what_if import hours_of

from gpuwaste.cli.main import main
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore

START = 1_700_000_000 // 3600 * 3600
RUN_S = 7200
BUSY_W, IDLE_W = 300.0, 50.0


def store_of(folder: Path, *, measured: tuple[int, ...] = (0, 1, 2)) -> str:
    """Write a store with three jobs of 4 GPUs that use one each, and a fourth that no agent saw; returns its path.

    Of the jobs `measured` energy is known: 300 W of the busy GPU, 50 W of each idle one.
    """
    path = folder / "hub.duckdb"
    store = HubStore.open(path, SystemClock())
    jobs = [
        JobRecord(
            "gw", n, START + n, user="u", time_limit_s=RUN_S, req_tres="cpu=4,node=1,gres/gpu=4", gpus=4, cpus=4,
            gpu_type="a100", start=START + RUN_S * n, end=START + RUN_S * (n + 1), elapsed_s=RUN_S, state="COMPLETED",
        )
        for n in range(4)
    ]  # fmt: skip
    upsert_jobs(store, jobs)
    rows = [hour for job in jobs[:3] for gpu in range(4) for hour in hours_of(job, gpu, {90 if gpu == 0 else 0: RUN_S})]
    upsert_hours(store, [with_energy(hour) if hour.run_key.job_id in measured else hour for hour in rows])
    store.close()
    return str(path)


def with_energy(hour: AllocationHour) -> AllocationHour:
    """Return a row with the joules of its GPU."""
    watts = BUSY_W if hour.gpu_uuid.endswith("-0") else IDLE_W
    return replace(hour, energy_j=watts * (hour.t1_ms - hour.t0_ms) / 1000)


def energy_of(found: dict[str, Any]) -> dict[str, Any]:
    """Return the energy of the first difference."""
    figures: dict[str, Any] = found["differences"][0]["figures"]
    return figures["gpu_energy_kwh"]  # type: ignore[no-any-return]


def test_right_sized_requests_free_idle_power(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three of four GPUs of three jobs idle for two hours: 0.9 kWh at 50 W of the 2.7 kWh that the jobs drew."""
    path = store_of(tmp_path)
    found = simulated(capsys, "what-if", "gpus", "--store", path)
    assert found["energy"] == {"used_kwh": 2.7, "measured_share": 0.75, "idle_w": {"a100": 50.0}}
    assert energy_of(found) == {"base": 2.7, "changed": 1.8, "difference": -0.9}
    assert main(["simulate", "what-if", "gpus", "--store", path]) == 0
    text = capsys.readouterr().out
    assert "GPU energy measured" in text
    assert "GPUs of these jobs used 2.7 kWh, measured in 75 % of their GPU-hours" in " ".join(text.split())


def test_a_job_that_was_not_measured_saves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the energy of one job known, its three idle GPUs alone are counted, and a quarter of the GPU-hours."""
    found = simulated(capsys, "what-if", "gpus", "--store", store_of(tmp_path, measured=(1,)))
    assert found["energy"]["measured_share"] == 0.25
    assert energy_of(found) == {"base": 0.9, "changed": 0.6, "difference": -0.3}


def test_absent_is_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a measurement, and of a log, there is no energy, not a zero; a larger machine changes none."""
    unmeasured = simulated(capsys, "what-if", "gpus", "--store", store_of(tmp_path, measured=()))
    log = simulated(capsys, "--swf", str(swf(tmp_path / "small.swf", ROWS)))
    for found in (unmeasured, log):
        assert "energy" not in found
    assert "gpu_energy_kwh" not in unmeasured["differences"][0]["figures"]
    (tmp_path / "other").mkdir()
    larger = simulated(capsys, "what-if", "processors=2", "--store", store_of(tmp_path / "other"), "--resource", "gpus")
    assert larger["energy"]["used_kwh"] == 2.7
    assert "gpu_energy_kwh" not in larger["differences"][0]["figures"]
