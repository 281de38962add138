"""Accounting's GPU count bounds what is stored for a run, whatever a node's agent was made to believe."""

from dataclasses import replace

from tests.integration.hub.rig import Rig

from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.testing.hub_rows import HOUR, batch, hour


def run(gpus: int, job: int = 7) -> JobRecord:
    """Return a run of job 7 that accounting knows."""
    return JobRecord("gw", job, HOUR - 9, user="u", start=HOUR, gpus=gpus, nodes="gpu1", state="RUNNING")


def stored(hub: Rig) -> list[str]:
    """Return the GPUs that the store has, with each of their hours."""
    return sorted(row["gpu_uuid"] for row in hub.hours())


def test_hours_of_gpus_beyond_accountings_count_are_rejected(hub: Rig) -> None:
    """Of 1,024 GPUs named for a run of one, the driver's is stored, the others are named one by one with the reason."""
    upsert_jobs(hub.store, [run(1)])
    forged = [hour(gpu_uuid=f"missing:gpu1:{at}", util_ms={}, unknown_ms={"not_in_nvml": 5}) for at in range(1023)]
    answer = hub.post(batch(hour(gpu_uuid="GPU-a"), *forged)).json
    assert (answer["accepted"], len(answer["rejected"])) == (1, 1023)
    assert "accounting gave job 7 1 GPUs, and missing:gpu1:0 on gpu1 is beyond" in answer["rejected"][0]["reason"]
    assert answer["rejected"][0]["line"] == 3
    assert stored(hub) == ["GPU-a"]


def test_what_came_first_stays_and_goes_on(hub: Rig) -> None:
    """A GPU that is stored keeps getting hours, also in a hub that has started again; one that comes later does not."""
    upsert_jobs(hub.store, [run(1)])
    assert hub.post(batch(hour(gpu_uuid="GPU-a"))).json["accepted"] == 1
    next_ms = (HOUR + HOUR_S) * 1000
    later = [
        hour(gpu_uuid=name, hour_utc=HOUR + HOUR_S, t0_ms=next_ms, t1_ms=next_ms + 1_800_000)
        for name in ("GPU-b", "GPU-a")
    ]
    assert hub.post(batch(*later)).json["accepted"] == 1
    assert stored(hub) == ["GPU-a", "GPU-a"]


def test_hours_that_came_before_accounting_are_a_claim(hub: Rig) -> None:
    """Until accounting knows the run its hours are taken; then those of the GPU that came first."""
    next_ms = (HOUR + HOUR_S) * 1000
    before = [
        hour(gpu_uuid="GPU-x", hour_utc=HOUR + HOUR_S, t0_ms=next_ms, t1_ms=next_ms + 1_800_000),
        hour(gpu_uuid="GPU-z"),
    ]
    assert hub.post(batch(*before)).json["accepted"] == 2
    upsert_jobs(hub.store, [run(1)])
    more = [replace(row, seq=2) for row in before]
    assert [entry["line"] for entry in hub.post(batch(*more)).json["rejected"]] == [2]


def test_a_gpu_that_the_driver_does_not_list_takes_no_real_one_s_place(hub: Rig) -> None:
    """A GPU that was missing at first is stored under its UUID as soon as the driver lists it."""
    upsert_jobs(hub.store, [run(1)])
    for name in ("missing:gpu1:0", "GPU-a", "GPU-b", "missing:gpu1:1"):
        hub.post(batch(hour(gpu_uuid=name)))
    assert stored(hub) == ["GPU-a", "missing:gpu1:0"]


def test_what_accounting_does_not_count_is_taken(hub: Rig) -> None:
    """Runs that accounting does not know, runs without a count (no gres/gpu in its TRES), and shares are no claims."""
    upsert_jobs(hub.store, [run(0, job=8), run(1, job=9)])
    names = ("GPU-a", "GPU-b", "GPU-c")
    rows = [hour(job, gpu_uuid=name, share=share) for job, share in ((7, 1.0), (8, 1.0), (9, 0.5)) for name in names]
    assert hub.post(batch(*rows)).json["accepted"] == 9


def test_a_count_that_grew_is_taken_up(hub: Rig) -> None:
    """A job that was given more GPUs while it runs: accounting is looked at again before a row is rejected."""
    upsert_jobs(hub.store, [run(1)])
    assert hub.post(batch(hour(gpu_uuid="GPU-a"), hour(gpu_uuid="GPU-b"))).json["accepted"] == 1
    upsert_jobs(hub.store, [run(2)])
    assert hub.post(batch(hour(gpu_uuid="GPU-b"))).json["accepted"] == 1


def test_what_one_node_names_takes_no_place_of_another_s_gpus(hub: Rig) -> None:
    """A node that names GPUs of a run first costs the hours of the others nothing, whether the run is on it or not."""
    upsert_jobs(hub.store, [run(1), replace(run(2, job=8), nodes="gpu[1-2]")])
    lies = [hour(job, node="gpu2", gpu_uuid=f"GPU-lie{at}") for job in (7, 8) for at in range(3)]
    assert hub.post(batch(*lies, node="gpu2"), origin="10.0.0.2").json["accepted"] == 3
    assert hub.post(batch(hour(7), hour(8))).json["accepted"] == 2
