"""Figure: rows of sacct a second that `gpuwaste history import` takes, as a whole process, beside the row-by-row path.

The rows are generated: each job with its batch and extern steps, among them arrays, requeued runs, jobs that never
started, names with newlines and bytes that are no UTF-8, and rows that cannot be read. The row-by-row path is what the
hub's own importer does with each window: parse in one process, 2,000 runs at a time into the store. It is measured on a
part of the rows, given as rows per second. Prints a table, then one line of JSON.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psutil

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import FIELDS, MORE_FIELDS, BadRow, parse_sacct, sacct_fields
from gpuwaste.store.hub.hub_store import HubStore

TARGET_S: Final = 60
GPUWASTE: Final = Path(sys.executable).with_name("gpuwaste")
CHUNK: Final = 2000
COLUMNS: Final = sacct_fields([*FIELDS, *MORE_FIELDS])
STATES: Final = ("COMPLETED",) * 14 + ("FAILED", "FAILED", "TIMEOUT", "CANCELLED by 1001", "OUT_OF_MEMORY", "NODE_FAIL")


def main() -> int:
    """Generate, import twice, import row by row, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--slow-rows", type=int, default=100_000, help="rows that the row-by-row path gets")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        home = Path(folder)
        rows = generate(home / "sacct.txt", options.rows)
        size_mb = (home / "sacct.txt").stat().st_size / 1e6
        print(f"{rows} rows of sacct, {size_mb:.0f} MB, load {os.getloadavg()[0]:.1f}")
        first = timed_import(home, options.jobs)
        one = timed_import(home, 1, store="one.duckdb")
        again = timed_import(home, options.jobs)
        slow = row_by_row(home, options.slow_rows)
        kept_mb = sum(f.stat().st_size for f in (home / "hub.pages").rglob("*.z")) / 1e6
        store_mb = (home / "hub.duckdb").stat().st_size / 1e6
    figures: dict[str, dict[str, Any]] = {
        f"import, {options.jobs} processes": rate(first, rows),
        "import, 1 process": rate(one, rows),
        "import again, nothing new": rate(again, rows),
        f"row by row ({options.slow_rows} rows)": rate(slow, options.slow_rows),
    }
    print(f"{'whole command':<28}{'s':>8}{'rows/s':>10}{'cpu s':>8}{'RSS MB':>8}{'runs':>9}{'bad':>6}")
    for name, f in figures.items():
        print(f"{name:<28}{f['s']:8.1f}{f['rows_s']:10.0f}{f['cpu_s']:8.1f}{f['rss_mb']:8.0f}{f['runs']:9}{f['bad']:6}")
    document = {"bench": "history", "target_s": TARGET_S, "rows": rows, "raw_mb": round(size_mb)}
    stored_b = round(store_mb * 1e6 / max(1, int(first["runs"])))
    document |= {
        "pages_mb": round(kept_mb),
        "store_mb": round(store_mb),
        "store_b_each_run": stored_b,
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(document | {"figures": figures}))
    return 0


def rate(figures: dict[str, Any], rows: int) -> dict[str, Any]:
    """Add the rows per second."""
    return figures | {"rows_s": round(rows / figures["s"]), "s": round(figures["s"], 1)}


def generate(path: Path, rows: int) -> int:
    """Write the file and return its rows, the header not counted."""
    written = 0
    with path.open("wb") as file:
        file.write("|".join(COLUMNS).encode() + b"\n")
        for group in jobs(random.Random(1)):  # noqa: S311 the same rows each time
            file.writelines(group)
            written += len(group)
            if written >= rows:
                break
    return written


def jobs(draw: random.Random) -> Iterator[list[bytes]]:
    """Yield the rows of one job after the other."""
    submit = 1_700_000_000
    for job in itertools.count(1):
        submit += draw.randrange(0, 40)
        start, seconds, user = submit + draw.randrange(0, 5000), draw.randrange(1, 40000), draw.randrange(500)
        gpus, state = draw.choice((0, 0, 1, 4)), draw.choice(STATES)
        gres = (f",gres/gpu={gpus}", f",gres/gpu={gpus},gres/gpu:a100={gpus}") if gpus else ("", "")
        row = {
            "JobIDRaw": f"{job}", "JobID": f"{job}", "User": f"user{user}", "UID": f"{1000 + user}", "Group": "users",
            "Account": f"acc{user % 40}", "Partition": "gpu", "QOS": "normal", "State": state, "Submit": f"{submit}",
            "Start": f"{start}", "End": f"{start + seconds}", "ElapsedRaw": f"{seconds}", "Suspended": "00:00:00",
            "TimelimitRaw": "1440", "NNodes": "1", "AllocCPUS": "8", "ReqMem": "65536M",
            "ReqTRES": f"billing=8,cpu=8,mem=65536M,node=1{gres[0]}",
            "AllocTRES": f"billing=8,cpu=8,mem=65536M,node=1{gres[1]}", "NodeList": f"gpu{job % 100}", "MaxRSS": "",
            "TotalCPU": "05:12:33.123", "JobName": f"train_{user}_{job % 97}",
            "SubmitLine": f"sbatch --gres=gpu:{gpus} train_{job % 97}.sh",
            "AdminComment": f";gw={draw.getrandbits(64):016x}", "ExitCode": "0:0", "Restarts": "0",
            "Eligible": f"{submit}", "Priority": f"{job}", "Reason": draw.choice(("None", "Priority")),
            "Flags": draw.choice(("SchedMain,StartRecieved", "SchedBackfill,StartRecieved")),
            "Constraints": draw.choice(("", "a100", "h100")), "Reservation": "", "ConsumedEnergyRaw": "", "Comment": "",
            "NTasks": "", "TRESUsageInTot": "", "TRESUsageInMax": "", "TRESUsageOutTot": "",
        }  # fmt: skip
        yield odd(row, job) or [line(row), *steps(row)]


def odd(row: dict[str, str], job: int) -> list[bytes]:
    """Return the rows of a job that is not like the others, nothing where it is."""
    later = {"Submit": row["End"], "Start": f"{int(row['End']) + 60}", "End": f"{int(row['End']) + 90}"}
    never = {"Start": "Unknown", "AllocTRES": "", "NodeList": "None assigned", "ElapsedRaw": "0"}
    running = {"ReqMem": "8000Mc", "TimelimitRaw": "UNLIMITED", "State": "RUNNING", "End": "Unknown"}
    kinds: dict[int, tuple[int, list[bytes]]] = {
        1: (50, [line(row | {"JobID": f"{job // 50}_{job % 7}"}), *steps(row)]),
        2: (100, [line(row | never)]),
        3: (200, [line(row | {"State": "REQUEUED"}), *steps(row), line(row | later), *steps(row)]),
        4: (500, [line(row | {"JobName": "a\nb"}), *steps(row)]),
        5: (500, [line(row).replace(b"train_", b"tr\xff\xe9_"), *steps(row)]),
        6: (1000, [line(row | {"Start": "yesterday"}), line(row)[:40] + b"\n"]),
        7: (1000, [line(row | running)]),
    }
    every, rows = kinds.get(job % 50, (1000, []))
    return rows if job % every == job % 50 else []


def steps(row: dict[str, str]) -> list[bytes]:
    """Return the batch and the extern step."""
    blank = dict.fromkeys(("User", "UID", "Group", "Partition", "QOS", "TimelimitRaw", "ReqMem", "ReqTRES"), "")
    blank |= dict.fromkeys(("SubmitLine", "Priority", "Reason", "Flags", "Constraints", "Eligible", "Restarts"), "")
    read, written = f"fs/disk={int(row['Submit']) % 10**9}", f"fs/disk={int(row['Submit']) % 10**6}"
    used = {
        "NTasks": "1", "ConsumedEnergyRaw": "0", "TRESUsageOutTot": f"energy=0,{written}",
        "TRESUsageInTot": f"cpu=05:12:33,energy=0,{read},mem=12345678K,pages=12,vmem=23456789K",
    }  # fmt: skip
    return [
        line(row | blank | used | {"JobIDRaw": f"{row['JobIDRaw']}.{step}", "JobName": step, "MaxRSS": rss})
        for step, rss in (("batch", "12345678K"), ("extern", "0"))
    ]


def line(row: dict[str, str]) -> bytes:
    """Return one row as sacct prints it."""
    return "|".join(row[name] for name in COLUMNS).encode() + b"\n"


def timed_import(home: Path, processes: int, store: str = "hub.duckdb") -> dict[str, Any]:
    """Run the command and return what it took, its children with it."""
    words: list[str | Path] = ["--sacct", home / "sacct.txt", "--clusters", "gw", "--into", home / store, "--json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    with subprocess.Popen(
        [GPUWASTE, "history", "import", "--threads", str(processes), *words], stdout=subprocess.PIPE
    ) as process:
        peak_mb = watch(process)
        document = json.loads(process.communicate()[0])
    took = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    done = document["imports"][0]
    return {"s": took, "cpu_s": round(cpu_s, 1), "rss_mb": round(peak_mb), "runs": done["runs"], "bad": done["bad"]}


def watch(process: "subprocess.Popen[bytes]") -> float:
    """Wait for the end and return the largest sum of resident memory, in MB, of the process and its children."""
    peak = 0
    whole = psutil.Process(process.pid)
    while process.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            peak = max(peak, sum(p.memory_info().rss for p in (whole, *whole.children(recursive=True))))
        time.sleep(0.1)
    return peak / 1e6


def row_by_row(home: Path, rows: int) -> dict[str, Any]:
    """Import a part as the hub does, in a process of its own."""
    script = f"import bench.history as b, pathlib; b.slow_path(pathlib.Path({str(home)!r}), {rows})"
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures | {"s": time.perf_counter() - began}


def slow_path(home: Path, rows: int) -> None:
    """Parse and write in this process, and print what it took."""
    store = HubStore.open(home / "slow.duckdb", SystemClock())
    runs, count, bad = list[JobRecord](), 0, 0
    with (home / "sacct.txt").open("rb") as file:
        next(file)
        for row in parse_sacct(itertools.islice(file, rows), "gw", COLUMNS, b"|"):
            if isinstance(row, BadRow):
                bad += 1
                continue
            runs.append(row)
            if len(runs) >= CHUNK:
                upsert_jobs(store, runs)
                count, runs = count + len(runs), []
    upsert_jobs(store, runs)
    store.close()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = round(usage.ru_utime + usage.ru_stime, 1)
    print(json.dumps({"cpu_s": cpu_s, "rss_mb": round(usage.ru_maxrss / 1e3), "runs": count + len(runs), "bad": bad}))


if __name__ == "__main__":
    sys.exit(main())
