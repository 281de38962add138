"""The demo's truth of a finding is what the job's load program measured of itself, not what it was told to do."""

from dataclasses import replace
from typing import Any, Final

import pytest

from gpuwaste.testing.demo.jobs import FIRST, NEAR, SECOND, DemoJob
from gpuwaste.testing.demo.measured import cpu_share, due
from gpuwaste.testing.simnvml import OracleEvent

JOBS: Final = {job.name: job for job in (*FIRST, *SECOND, *NEAR)}
START: Final = OracleEvent(
    t_utc=1000.0, mono=50.0, pid=1, job_id=7, restart=0, step=None, node="gpu1", minor=0, uuid="GPU-a", mig_uuid="",
    util=22.0, mem_mib=0, power_w=0, sm_ratio=0.2, listed=True, event="start", cpu_s=0.01,
)  # fmt: skip


def run_of(length_s: float, unknown_s: float = 0.0, cpus: int = 1) -> list[dict[str, Any]]:
    """Return a job's document of one run with one GPU, from 1000 on."""
    devices = [{"unknown_s": unknown_s}]
    return [{"raw_id": 7, "start": 1000, "end": 1000 + length_s, "cpus": cpus, "devices": devices}]


def burnt(seconds: float, cpu_s: float) -> list[OracleEvent]:
    """Return the log of a program that ran so long and used so much CPU time."""
    end = replace(START, t_utc=1000 + seconds, mono=50 + seconds, cpu_s=0.01 + cpu_s, event="end")
    return [START, end]


@pytest.mark.parametrize(
    ("cpu_s", "kinds"),
    [(45.0, {"cpu_starved"}), (43.0, {"cpu_starved"}), (40.0, {"", "cpu_starved"}), (25.0, {""}), (0.0, {""})],
)
def test_a_program_that_did_not_get_its_cpu_is_not_starved_of_it(cpu_s: float, kinds: set[str]) -> None:
    """The finding is due where the CPU was measured to be busy, either is right at the threshold, none below it."""
    found = due(JOBS["loader"], run_of(45), burnt(45, cpu_s), 4)
    assert found.kinds == kinds
    assert f"its CPU {cpu_s / 45:.0%} busy" in found.text


def test_two_cpus_are_twice_the_time() -> None:
    """The share is of all CPUs that the run has."""
    assert cpu_share(burnt(40, 40), 2) == pytest.approx(0.5)


def test_a_log_without_cpu_time_leaves_the_plan() -> None:
    """Recordings of load programs that did not write it are held against what the job was made for."""
    events = [replace(event, cpu_s=None) for event in burnt(45, 1)]
    assert due(JOBS["loader"], run_of(45), events, 4).kinds == {"cpu_starved"}


@pytest.mark.parametrize(
    ("name", "idle_s", "unknown_s", "kinds"),
    [
        ("finetune", 70, 0, {"idle_tail"}),
        ("finetune", 70, 9, {"", "idle_tail"}),
        ("finetune", 40, 0, {""}),
        ("near-tail", 10, 0, {""}),
        ("near-tail", 75, 0, {"idle_tail"}),
        ("near-shell", 62, 0, {"", "idle_interactive"}),
    ],
)
def test_the_time_after_the_last_work_decides(name: str, idle_s: float, unknown_s: float, kinds: set[str]) -> None:
    """A near miss whose end a busy host held up is no miss, and a GPU that nobody saw for a while may be either."""
    stopped = replace(START, t_utc=1012.0, mono=62.0, util=0.0, event="phase")
    found = due(JOBS[name], run_of(12 + idle_s, unknown_s), [START, stopped], 4)
    assert found.kinds == kinds


@pytest.mark.parametrize(
    "job",
    [job for job in JOBS.values() if not {"idle_tail", "idle_interactive", "cpu_starved"} & {job.finding, job.near}],
)
def test_what_no_host_can_change_is_as_planned(job: DemoJob) -> None:
    """A job that never works, or works evenly, is due what it was made for."""
    assert due(job, run_of(64), burnt(64, 1), 4).kinds == {job.finding}
