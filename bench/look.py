"""Figure: time and memory of `gpuwaste look` over a million jobs of sacct's text, and of its installation.

The text is as look itself requests it: a row for each job, without steps. The installation is what `pipx run` and `uvx`
make: a new environment, the wheel with its extra [look], downloaded. For comparison pandas reads the same file in an
environment of its own, and only reads it: without jobs' times and GPUs as numbers, views or pages. Prints a table, then
one line of JSON.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Final

import psutil

from bench.history import COLUMNS, jobs
from gpuwaste.views.look.slices import job_columns

TARGET_S: Final = 60.0
TARGET_MB: Final = 500.0
ROOT: Final = Path(__file__).parent.parent
PANDAS: Final = "import pandas, sys; print(len(pandas.read_csv(sys.argv[1], sep='|', encoding_errors='replace')))"


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds and MB: of a run its wall time, processor time and largest memory, of an installation its size.

    An installation that was not made has None.
    """

    install_s: float | None
    install_mb: float | None
    run_s: float
    cpu_s: float
    memory_mb: float


def main() -> int:
    """Generate, install, run, print; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--here", action="store_true", help="run this checkout; install nothing, without pandas")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuwaste-bench-") as name:
        home = Path(name)
        text = generate(home / "sacct.txt", options.jobs)
        words = ["look", "--from", str(text), "--time-zone", "UTC", "-o", str(home / "look")]
        if options.here:
            costs = {"gpuwaste look": measured([sys.executable, "-m", "gpuwaste.cli", *words])}
        else:
            costs = {
                "gpuwaste look": in_environment(home / "ours", f"{wheel(home)}[look]", ["gpuwaste.cli", *words]),
                "pandas, reading only": in_environment(home / "theirs", "pandas", ["-c", PANDAS, str(text)]),
            }
        size_mb = text.stat().st_size / 1e6
    print(f"{options.jobs} jobs, {size_mb:.0f} MB of text, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    print(f"{'':<24}{'install s':>10}{'MB':>8}{'run s':>9}{'cpu s':>8}{'PSS MB':>8}")
    for what, cost in costs.items():
        install = "".join(f"{value or 0:>{width}.0f}" for value, width in ((cost.install_s, 10), (cost.install_mb, 8)))
        print(f"{what:<24}{install}{cost.run_s:9.1f}{cost.cpu_s:8.1f}{cost.memory_mb:8.0f}")
    ours = costs["gpuwaste look"]
    figures = {what: asdict(cost) for what, cost in costs.items()}
    print(json.dumps({"bench": "look", "target_s": TARGET_S, "target_mb": TARGET_MB, "figures": figures}))
    return int(ours.run_s > TARGET_S or ours.memory_mb > TARGET_MB)


def generate(path: Path, count: int) -> Path:
    """Write a header and a row for each job, with the columns of look."""
    columns = job_columns(COLUMNS)
    wanted = itemgetter(*map(COLUMNS.index, columns))
    with path.open("wb") as file:
        file.write("|".join(columns).encode() + b"\n")
        for group in islice(jobs(random.Random(1)), count):  # noqa: S311 the same jobs each time
            file.write(b"|".join(wanted(group[0].rstrip(b"\n").split(b"|"))) + b"\n")
    return path


def wheel(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True)
    return next(folder.glob("gpuwaste-*.whl"))


def in_environment(folder: Path, package: str, words: list[str]) -> Cost:
    """Install a package into a new environment, and run a module or a program of Python in it."""
    began = time.perf_counter()
    venv.create(folder, with_pip=True)
    size_b = size_of(folder)
    python = str(folder / "bin" / "python")
    install = ["-m", "pip", "install", "-q", "--no-cache-dir", "--disable-pip-version-check", package]
    subprocess.run([python, *install], check=True)
    took_s = time.perf_counter() - began
    run = measured([python, *([] if words[0] == "-c" else ["-m"]), *words])
    size_mb = (size_of(folder) - size_b) / 1e6
    return Cost(round(took_s, 1), round(size_mb, 1), run.run_s, run.cpu_s, run.memory_mb)


def measured(command: list[str]) -> Cost:
    """Run a command, its children with it."""
    before, began = os.times(), time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        peak_mb = watch(process)
    took_s, after = time.perf_counter() - began, os.times()
    if process.returncode:
        raise SystemExit(f"{command}: exit code {process.returncode}")
    cpu_s = sum(after[2:4]) - sum(before[2:4])
    return Cost(None, None, round(took_s, 1), round(cpu_s, 1), round(peak_mb))


def watch(process: "subprocess.Popen[bytes]") -> float:
    """Wait for the end and return the largest memory, in MB, of the process and its children, shared pages once."""
    peak = 0
    whole = psutil.Process(process.pid)
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            peak = max(peak, sum(p.memory_full_info().pss for p in (whole, *whole.children(recursive=True))))
        time.sleep(0.5)
    return peak / 1e6


def size_of(folder: Path) -> int:
    """Return the bytes of all files."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    sys.exit(main())
