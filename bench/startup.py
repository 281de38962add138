"""Figure: how long the command takes to start: `--help` and a report, beside python3 and sacct.

Beside them what nothing is faster than, `python3 -c pass` of the same interpreter, and what users are used to,
`squeue --help` (sacct's --help asks for slurm.conf and slurmdbd first). The hub is a real one with a thousand jobs; the
runs of all rows take turns, so that a busy host weighs on each alike. CPU is user and system time of the process.
Prints a table, then one line of JSON.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.report import GPUWASTE, fill, start_hub

TARGETS_MS: Final = {"gpuwaste --help": 80, "gpuwaste report": 120}
_JOBS: Final = 1000
_SLURM_CONF: Final = "ClusterName=bench\nSlurmctldHost=localhost\nNodeName=node1\nPartitionName=all Nodes=ALL\n"
_WIDTHS: Final = (8, 8, 8, 8, 10, 12, 8)


def main() -> int:
    """Start a hub, time the commands, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as folder:
        home = Path(folder)
        fill(home / "hub.duckdb", _JOBS)
        hub = start_hub(home)
        try:
            figures = measure(commands(home), options.runs)
        finally:
            hub.terminate()
            hub.wait(30)
    print(json.dumps({"bench": "startup", "targets_ms": TARGETS_MS, "runs": options.runs, "figures": figures}))
    return 0


def commands(home: Path) -> dict[str, list[str]]:
    """Return the commands by the name of their row."""
    rows = {
        "python3 -c pass": [sys.executable, "-c", "pass"],
        "gpuwaste --help": [str(GPUWASTE), "--help"],
        "gpuwaste report": [
            str(GPUWASTE),
            "report",
            "-u",
            "user0",
            "-S",
            "now-365days",
            "--config",
            f"{home}/gpuwaste.toml",
        ],
    }
    squeue = shutil.which("squeue")
    (home / "slurm.conf").write_text(_SLURM_CONF)
    os.environ["SLURM_CONF"] = str(home / "slurm.conf")  # which squeue wants even for its help
    return rows | ({"squeue --help": [squeue, "--help"]} if squeue else {})


def measure(rows: Mapping[str, Sequence[str]], runs: int) -> dict[str, dict[str, float]]:
    """Run each command in turn and print the table."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in rows}
    for turn in range(runs + 1):
        for name, argv in rows.items():
            took = timed(argv)
            if turn:  # the first run reads the files from disk
                taken[name].append(took)
    heads = zip(("min", "median", "p95", "max", "CPU min", "CPU median", "target"), _WIDTHS, strict=True)
    print(f"{'whole process, ms':<20}" + "".join(f"{head:>{size}}" for head, size in heads))
    figures = {}
    for name, values in taken.items():
        wall, cpu = sorted(ms for ms, _ in values), sorted(ms for _, ms in values)
        row = {
            "min_ms": wall[0],
            "median_ms": statistics.median(wall),
            "p95_ms": wall[int(0.95 * (runs - 1))],
            "max_ms": wall[-1],
            "cpu_min_ms": cpu[0],
            "cpu_median_ms": statistics.median(cpu),
        }
        figures[name] = {key: round(value, 1) for key, value in row.items()}
        cells = [f"{value:.0f}" for value in row.values()] + [str(TARGETS_MS.get(name, ""))]
        print(f"{name:<20}" + "".join(f"{cell:>{size}}" for cell, size in zip(cells, _WIDTHS, strict=True)))
    return figures


def timed(argv: Sequence[str]) -> tuple[float, float]:
    """Return the milliseconds of a process from its start to its end, and those of CPU that it used."""
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    took = (time.perf_counter() - began) * 1000
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)}: exit code {process.returncode}")
    return took, (used.ru_utime + used.ru_stime) * 1000


if __name__ == "__main__":
    sys.exit(main())
