"""The fault table: each fault, what is to happen while it lasts, and the test that shows it on a real slurmctld.

The page docs/reference/faults.md is made from these declarations and from what `make faults` measured. In every case,
besides what is said here: no job is lost or refused wrongly, slurmctld keeps its pid where it was not restarted, its
threads and open files return to what they were, squeue, sinfo and scontrol are answered, and verdicts are given again
afterwards.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

MEASURED: Final = Path(__file__).parents[2] / "docs" / "faults-measured.json"
MODULE: Final = "tests/system/test_submit_faults.py"
_OPEN: Final = "Every job passes; after three misses the breaker opens and nobody waits."
_REFUSED: Final = "The reply is refused, every job passes; the breaker opens."


@dataclass(frozen=True, slots=True)
class FaultCase:
    """One row: `fault` in words, `meanwhile` what is to happen, `test` the function that shows it."""

    key: str
    fault: str
    meanwhile: str
    test: str


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of a case saw; a run that lost or wrongly refused a job fails and leaves no row.

    `refused` counts rejections that the policy of the test asks for, before and after the fault; `cut` submissions
    that slurmctld left without an answer because it was killed; `longest_ms` is the longest sbatch, its start included.
    `missed` and `opened` are the plugin's own counters, None where it began anew.
    """

    slurm: str
    submissions: int
    refused: int
    cut: int
    longest_ms: int
    missed: int | None
    opened: int | None


STOOD_IN_TEST: Final = "test_an_advisor_at_fault_costs_no_job"
CASES: Final = {
    case.key: case
    for case in (
        FaultCase("absent", "No advisor: no socket", _OPEN, STOOD_IN_TEST),
        FaultCase("hung", "The advisor accepts and never answers", _OPEN, STOOD_IN_TEST),
        FaultCase("deaf", "The advisor does not accept: its backlog is full", _OPEN, STOOD_IN_TEST),
        FaultCase("slow", "Each answer comes long after the deadline", _OPEN, STOOD_IN_TEST),
        FaultCase("drip", "Each answer comes byte by byte, past the deadline", _OPEN, STOOD_IN_TEST),
        FaultCase("garbage", "Random bytes for an answer", _REFUSED, STOOD_IN_TEST),
        FaultCase("no-json", "A good header, no JSON behind it", _REFUSED, STOOD_IN_TEST),
        FaultCase("half", "Half an answer, then the end of the connection", _REFUSED, STOOD_IN_TEST),
        FaultCase("megabyte", "An answer of 1 MB", _REFUSED, STOOD_IN_TEST),
        FaultCase("short-header", "A header with another length than the answer", _REFUSED, STOOD_IN_TEST),
        FaultCase("other-version", "A rejection in another protocol version", _REFUSED, STOOD_IN_TEST),
        FaultCase("unknown-action", "An action that the plugin does not know", _REFUSED, STOOD_IN_TEST),
        FaultCase("wrong-types", "A rejection with wrong types, NaN, codes out of range", _REFUSED, STOOD_IN_TEST),
        FaultCase(
            "hostile",
            "A warning with terminal controls and a forged token",
            "Every job passes; no control character reaches the terminal, nothing forged admin_comment.",
            "test_a_hostile_warning_is_disarmed",
        ),
        FaultCase("closing", "The advisor closes each connection at once", _REFUSED, STOOD_IN_TEST),
        FaultCase(
            "foreign",
            "The socket is replaced by another user's, who rejects all jobs",
            "Nobody asks him: every job passes.",
            "test_a_socket_of_another_user_is_not_believed",
        ),
        FaultCase(
            "restarted",
            "The advisor is restarted, once in order and once by SIGKILL",
            "Jobs pass while it is away.",
            "test_the_advisor_may_be_restarted_under_load",
        ),
        FaultCase(
            "stopped",
            "SIGSTOP of the advisor for 10 s",
            "Jobs pass; verdicts are back by themselves.",
            "test_an_advisor_that_is_stopped_for_ten_seconds",
        ),
        FaultCase(
            "bundle",
            "The model bundle is corrupted while the advisor runs, and is corrupt at its start",
            "The bundle in use stays; after such a start history alone speaks, and verdicts go on.",
            "test_a_corrupt_bundle_stops_no_verdict",
        ),
        FaultCase(
            "disk-full",
            "The advisor's state directory is on a full disk",
            "Verdicts are given and wait in memory; they are all sent once there is room.",
            "test_a_full_disk_stops_no_verdict",
        ),
        FaultCase(
            "clock",
            "The advisor's wall clock steps three hours ahead, then three hours behind",
            "Ahead: verdicts go on. Behind: its answers look stale to the plugin, every job passes.",
            "test_a_clock_step_of_the_advisor",
        ),
        FaultCase(
            "parallel",
            "200 submitters side by side",
            "Every job is answered in time or passes.",
            "test_two_hundred_parallel_submitters",
        ),
        FaultCase(
            "sizes",
            "Job descriptions at every limit, with control characters and invalid UTF-8, binary scripts",
            "Slurm decides as without the plugin and keeps every text.",
            "test_no_job_description_is_treated_otherwise_than_without_us",
        ),
        FaultCase(
            "reconfigure",
            "scontrol reconfigure during the load",
            "Verdicts go on.",
            "test_reconfiguring_slurmctld_under_load",
        ),
        FaultCase(
            "slurmctld-restart",
            "slurmctld restarts during the load",
            "sbatch waits for it; verdicts go on.",
            "test_restarting_slurmctld_under_load",
        ),
        FaultCase(
            "kill-switch",
            "The kill switch goes on and off during the load",
            "While it is on nobody is asked and every job passes.",
            "test_the_kill_switch_under_load",
        ),
        FaultCase(
            "failover",
            "The primary slurmctld and its advisor are killed during the load",
            "The backup takes over and asks the advisor beside it. Slurm loses what it had not saved: up to 5 s.",
            "test_the_backup_controller_asks_its_own_advisor",
        ),
    )
}
"""Key -> case, in the order of the page."""


def read_measured(path: Path = MEASURED) -> dict[str, Measured]:
    """Return what was measured last, by key; {} before the first `make faults`."""
    if not path.exists():
        return {}
    return {key: Measured(**row) for key, row in json.loads(path.read_text(encoding="utf-8")).items()}


def write_measured(key: str, measured: Measured, path: Path) -> None:
    """Add or replace one case's row; rows of cases that are no longer declared go."""
    rows = {k: row for k, row in read_measured(path).items() if k in CASES} | {key: measured}
    ordered = {k: asdict(rows[k]) for k in CASES if k in rows}
    path.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
