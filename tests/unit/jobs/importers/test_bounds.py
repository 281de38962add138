"""Numbers beyond what a store can hold cost their own row, not the import."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.jobs.importers.rows import opened

from gpuwaste.jobs.importers.bulk_import import import_source
from gpuwaste.jobs.importers.file_source import csv_file, sacct_file
from gpuwaste.jobs.importers.history_source import ImportSource
from gpuwaste.jobs.importers.sources.swf import SwfFile

HUGE = "999999999999"


def sacct(folder: Path) -> ImportSource:
    file = folder / "a.txt"
    head = "JobIDRaw|Submit|State|NNodes|AllocCPUS|ExitCode|MaxRSS|AllocTRES\n"
    bad = (
        f"7|1700000000|FAILED|{HUGE}|1|0:0||",
        f"7|1700000000|FAILED|1|{HUGE}|0:0||",
        "7|1700000000|FAILED|1|1|9999999999:0||",
    )
    good = "8|1700000000|COMPLETED|4294967294|1|0:0||"
    file.write_text(
        head + "\n".join((*bad, good, f"9|1700000000|FAILED|1|1|0:0||\n9.0|1|FAILED|1|1|0:0|{HUGE}E|")) + "\n"
    )
    return sacct_file(file, "gw", zone="UTC")


def as_json(folder: Path) -> ImportSource:
    file = folder / "a.json"
    job = {"job_id": 7, "cluster": "gw", "time": {"submission": 1700000000}}
    bad = [job | {"allocation_nodes": 10**12}, job | {"restart_cnt": 2**40}, job | {"required": {"CPUs": 2**62}}]
    file.write_text(json.dumps({"jobs": [*bad, job | {"job_id": 8}, job | {"time": {"submission": 2**62 + 1}}]}))
    return sacct_file(file, "", zone="UTC")


def swf(folder: Path) -> ImportSource:
    file = folder / "a.swf"
    rows = [
        f"{job} 0 1 60 {procs} -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1" for job, procs in enumerate((HUGE, 2**31, 2**33, 4), 5)
    ]
    rows.append(f"9 0 1 60 {HUGE} {HUGE} -1 1 60 {HUGE} 1 1 1 1 1 1 -1 -1")
    file.write_text("\n".join(rows) + "\n")
    return SwfFile(file)


def table(folder: Path) -> ImportSource:
    (folder / "m.toml").write_text(
        'cluster = "c"\n[columns]\njob_id = "a"\nsubmit = "b"\ncpus = "c"\nalloc_tres = "d"\n'
    )
    file = folder / "a.csv"
    tres = ",".join(f"gres/gpu:{kind}=999999999" for kind in "abc")
    rows = [f'8,1700000000,{HUGE},""', *(f'{job},1700000000,1,"{tres}"' for job in (1, 2, 3, 4))]
    file.write_text("a,b,c,d\n" + "\n".join(rows) + "\n")
    return csv_file(file, folder / "m.toml", "", zone="UTC")


@pytest.mark.parametrize("make", [sacct, as_json, swf, table])
def test_a_number_beyond_any_costs_its_row_alone(tmp_path: Path, make: Callable[[Path], ImportSource]) -> None:
    """Four rows are set aside with the field's name, the fifth is stored."""
    path = tmp_path / "s" / "hub.duckdb"
    store = opened(path)
    result = import_source(store, path, make(tmp_path))
    assert (result.runs, result.bad) == (1, 4)
    assert [row["job_id"] for row in store.ask("jobs_of_id", {"cluster": result.cluster or "gw", "job_id": 8})] == [8]
    assert all(":" in row.reason for row in result.first_bad)
    store.close()
