"""The quick import has the same jobs as the bulk import, and says the same of rows that cannot be read."""

import base64
import gzip
import json
import random
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from bench.history import COLUMNS as SACCT
from bench.history import jobs

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.importers.bulk_import import import_source
from gpuwaste.jobs.importers.history_store import HistoryStore
from gpuwaste.jobs.importers.quick_import import import_quickly
from gpuwaste.jobs.importers.sources.sacct import SacctFile
from gpuwaste.slurm.accounting.sacct_table import COLUMNS
from gpuwaste.store.database import Database
from gpuwaste.views.unread_rows import unread_rows

SHOWN = ", ".join(f'"{name}"' for name in COLUMNS)


def rows_of(path: Path) -> tuple[list[tuple[object, ...]], list[str]]:
    """Return a store's jobs, and what it says of rows that cannot be read."""
    with closing(Database.open(path, "hub")) as db:
        found = db.execute(f"SELECT {SHOWN} FROM jobs ORDER BY ALL").fetchall()  # noqa: S608 own names
        return found, unread_rows(db)


@pytest.mark.parametrize("page_b", [50_000, 1 << 30])
def test_both_imports_have_the_same_jobs(tmp_path: Path, page_b: int) -> None:
    """Arrays, requeued and never started jobs, names of two lines, odd bytes, bad rows: in one page or in many."""
    text = tmp_path / "sacct.txt"
    groups = islice(jobs(random.Random(3)), 1200)
    text.write_bytes("|".join(SACCT).encode() + b"\n" + b"".join(line for group in groups for line in group))
    source = SacctFile(text, "gw", page_b=page_b)
    with closing(HistoryStore.open(tmp_path / "bulk.duckdb", SystemClock())) as store:
        import_source(store, tmp_path / "bulk.duckdb", source)
    with closing(HistoryStore.open(tmp_path / "quick.duckdb", SystemClock())) as store:
        assert import_quickly(store, source) > 1200
    assert rows_of(tmp_path / "quick.duckdb") == rows_of(tmp_path / "bulk.duckdb")


def test_of_windows_that_list_a_run_several_times_one_row_is_left(tmp_path: Path) -> None:
    """A run that was waiting, then running, then over when its windows were read counts once, as it ended."""
    text = tmp_path / "sacct.txt"
    text.write_text(
        "JobIDRaw|Submit|Start|End|State\n"
        "7|1700000000|Unknown|Unknown|PENDING\n"
        "8|1700000000|1700000100|Unknown|RUNNING\n"
        "9|1700000000|Unknown|Unknown|PENDING\n"
        "7|1700000000|1700000100|Unknown|RUNNING\n"
        "8|1700000000|1700000100|1700000200|COMPLETED\n"
        "7|1700000000|1700000100|1700000300|FAILED\n"
    )
    with closing(HistoryStore.open(tmp_path / "quick.duckdb", SystemClock())) as store:
        import_quickly(store, SacctFile(text, "gw"))
    with closing(Database.open(tmp_path / "quick.duckdb", "hub")) as db:
        left = db.execute('SELECT job_id, state, "end" FROM jobs ORDER BY job_id').fetchall()
    assert left == [(7, "FAILED", 1700000300), (8, "COMPLETED", 1700000200), (9, "PENDING", None)]


def test_both_imports_have_the_same_use_of_gpus(tmp_path: Path) -> None:
    """Jobstats' summaries in AdminComment and the peaks of steps; a damaged summary and a name with a bell, too."""
    text = tmp_path / "sacct.txt"
    bell = js1({"gpu\a1": {"gpu_utilization": {"0": 4}}}, 500)
    comments = (js1({"gpu1": {"gpu_utilization": {"0": 93.5, "1": 0}}}, 500), "JS1:damaged", bell, "", "")
    rows = ["JobIDRaw|Submit|Start|End|State|AllocTRES|AdminComment|TRESUsageInMax|NodeList"]
    for job, comment in enumerate(comments, 1):
        rows.append(f"{job}|1700000000|1700000100|1700000600|COMPLETED|cpu=4,gres/gpu=2|{comment}||gpu1")
        rows.append(f"{job}.0|1700000000|1700000100|1700000600|COMPLETED|||gres/gpumem=7G,gres/gpuutil={job % 5}|gpu1")
    text.write_text("\n".join(rows) + "\n")
    source = SacctFile(text, "gw")
    with closing(HistoryStore.open(tmp_path / "bulk.duckdb", SystemClock())) as store:
        import_source(store, tmp_path / "bulk.duckdb", source)
    with closing(HistoryStore.open(tmp_path / "quick.duckdb", SystemClock())) as store:
        import_quickly(store, source)
    found = uses_of(tmp_path / "quick.duckdb")
    assert found == uses_of(tmp_path / "bulk.duckdb")
    assert [(row[1], row[3]) for row in found] == [
        *((1, "jobstats"), (1, "jobstats"), (1, "slurm"), (2, "slurm"), (3, "jobstats"), (3, "slurm")),
        *((4, "slurm"), (5, "slurm")),
    ]
    assert rows_of(tmp_path / "quick.duckdb") == rows_of(tmp_path / "bulk.duckdb")


def js1(nodes: dict[str, Any], total_s: int) -> str:
    """Return a summary as jobstats writes it."""
    data = json.dumps({"nodes": nodes, "total_time": total_s, "gpus": 2}).encode()
    return "JS1:" + base64.b64encode(gzip.compress(data)).decode()


def uses_of(path: Path) -> list[tuple[Any, ...]]:
    """Return what a store has of the use of GPUs."""
    with closing(Database.open(path, "hub")) as db:
        return db.execute("SELECT * FROM accounted_use ORDER BY job_id, source, gpu").fetchall()
