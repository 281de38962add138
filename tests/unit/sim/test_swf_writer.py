"""Logs that are written: names become numbers, what is not known stays so, and no name breaks a line."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.jobs.history.swf_table import swf_table
from gpuwaste.sim.swf_writer import swf_lines
from gpuwaste.slurm.accounting.job_record import JobRecord

START = 1_700_000_000


def job(number: int, user: str, state: str, start: int | None, **more: object) -> JobRecord:
    values: dict[str, object] = {"end": None if start is None else start + 50, "elapsed_s": 50, "cpus": 4}
    fields = {"cluster": "c", "job_id": number, "submit": START + number, "printed_id": str(number), "user": user}
    return JobRecord(**{**fields, "state": state, "start": start, **values, **more})  # type: ignore[arg-type]


def test_a_history_is_written_and_read_back(tmp_path: Path) -> None:
    """Waits, states, limits and memory survive; names are numbered; jobs that never started stay so."""
    jobs = [
        job(1, "ann", "COMPLETED", START + 11, time_limit_s=60, req_tres="cpu=4,mem=8M"),
        job(2, "7", "FAILED", START + 20),
        job(3, "bob", "TIMEOUT", START + 30),
        job(4, "", "CANCELLED", None, end=START + 9, elapsed_s=0, cpus=None),
        job(5, "ann", "RUNNING", START + 40, end=None, elapsed_s=None),
    ]
    path = tmp_path / "h.swf"
    path.write_text("".join(swf_lines(table_of(jobs), 64, {"Computer": "a\nb; 1 2 3"})))
    log = swf_table(path)
    assert log.bad == ()
    assert log.facts.origin == START + 1
    assert log.table.submit.tolist() == [START + k for k in range(1, 6)]
    assert log.table.start.tolist() == [START + 11, START + 20, START + 30, -1, START + 40]
    assert log.table.limit_s.tolist()[0] == 60
    assert log.table.mem_b.tolist()[0] == 8 * 1024**2
    names = [log.table.user.values[code] for code in log.table.user.codes]
    assert names == ["8", "7", "9", "", "8"]
    assert [outcome == 1 for outcome in log.table.outcome] == [True, False, False, False, False]


def test_nothing_is_no_log() -> None:
    """A table without a job is refused."""
    with pytest.raises(UsageError, match="no job to write"):
        list(swf_lines(table_of([]), 1, {}))
