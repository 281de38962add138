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
_OPEN: Final = "Jobs are accepted without advice; after three misses the breaker opens and submissions are not delayed."
_REFUSED: Final = "The reply is rejected, jobs are accepted without advice; the breaker opens."


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
        FaultCase("garbage", "Random bytes as the answer", _REFUSED, STOOD_IN_TEST),
        FaultCase("no-json", "A valid header without JSON after it", _REFUSED, STOOD_IN_TEST),
        FaultCase("half", "Half an answer, then the end of the connection", _REFUSED, STOOD_IN_TEST),
        FaultCase("megabyte", "An answer of 1 MB", _REFUSED, STOOD_IN_TEST),
        FaultCase("short-header", "A header with another length than the answer", _REFUSED, STOOD_IN_TEST),
        FaultCase("other-version", "A rejection in another protocol version", _REFUSED, STOOD_IN_TEST),
        FaultCase("unknown-action", "An action that the plugin does not know", _REFUSED, STOOD_IN_TEST),
        FaultCase("wrong-types", "A rejection with wrong types, NaN, codes out of range", _REFUSED, STOOD_IN_TEST),
        FaultCase(
            "hostile",
            "A warning with terminal controls and a forged token",
            "Jobs are accepted; no control character reaches the terminal, and no forged token reaches admin_comment.",
            "test_a_hostile_warning_is_disarmed",
        ),
        FaultCase("closing", "The advisor closes each connection at once", _REFUSED, STOOD_IN_TEST),
        FaultCase(
            "foreign",
            "The socket is replaced by another user's, who rejects all jobs",
            "The socket is not used: jobs are accepted without advice.",
            "test_a_socket_of_another_user_is_not_believed",
        ),
        FaultCase(
            "restarted",
            "The advisor is restarted, once normally and once by SIGKILL",
            "Jobs are accepted without advice meanwhile.",
            "test_the_advisor_may_be_restarted_under_load",
        ),
        FaultCase(
            "stopped",
            "SIGSTOP of the advisor for 10 s",
            "Jobs are accepted without advice; verdicts resume without a restart.",
            "test_an_advisor_that_is_stopped_for_ten_seconds",
        ),
        FaultCase(
            "bundle",
            "The model bundle is corrupted while the advisor runs, and is corrupt at its start",
            "The loaded bundle stays in use; after such a start only job history is used, and verdicts continue.",
            "test_a_corrupt_bundle_stops_no_verdict",
        ),
        FaultCase(
            "disk-full",
            "The advisor's state directory is on a full disk",
            "Verdicts continue and wait in memory; all are sent once there is space.",
            "test_a_full_disk_stops_no_verdict",
        ),
        FaultCase(
            "clock",
            "The advisor's wall clock steps three hours ahead, then three hours behind",
            "Ahead: verdicts continue. Behind: its answers count as stale, jobs are accepted without advice.",
            "test_a_clock_step_of_the_advisor",
        ),
        FaultCase(
            "parallel",
            "200 concurrent submitters",
            "Every job gets its verdict in time or is accepted without advice.",
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
            "Verdicts continue.",
            "test_reconfiguring_slurmctld_under_load",
        ),
        FaultCase(
            "slurmctld-restart",
            "slurmctld restarts during the load",
            "sbatch waits for it; verdicts continue.",
            "test_restarting_slurmctld_under_load",
        ),
        FaultCase(
            "kill-switch",
            "The kill switch is created and removed during the load",
            "While it exists, jobs are accepted without advice.",
            "test_the_kill_switch_under_load",
        ),
        FaultCase(
            "failover",
            "The primary slurmctld and its advisor are killed during the load",
            "The backup takes over and uses the advisor on its host. Slurm loses what it had not saved: up to 5 s.",
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
