"""Figure: memory of the child that folds samples, part by part, with a day of 8 GPUs at one sample in 10 s.

It runs as the agent starts it, in an interpreter with our path and nothing else of the site's. After each part it reads
/proc/self/smaps_rollup: resident memory, and of it what is the process's own (anonymous). The rest is pages of files,
most of them DuckDB's library, which the kernel takes back when it needs them. Peaks are those of the process so far.

Prints a table and one line of JSON.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from gpuwaste.agent.segment import Segment
from gpuwaste.ledger.gpu_sample import Confidence, MapSource, Sample
from gpuwaste.slurm.run_key import RunKey

GPUS: Final = 8
TICKS: Final = 90  # of a quarter of an hour
DAY: Final = "2026-01-01"
_DAY_US: Final = 1_767_225_600_000_000
_STEP_US: Final = 10_000_000
_KEYS: Final = {"Rss": "rss_mb", "Pss": "pss_mb", "Anonymous": "own_mb"}

# What the child does, with a line of memory after each part; nothing of ours is loaded before its part.
CHILD: Final = """
import json, sys
def told(part):
    lines = open("/proc/self/smaps_rollup").read() + open("/proc/self/status").read()
    print(json.dumps([part, lines]), flush=True)
told("the interpreter")
sys.path[:] = {path!r}
from pathlib import Path
import gpuwaste.agent.child, gpuwaste.agent.segment, gpuwaste.core.logs
told("the modules that read segments")
import duckdb
told("DuckDB imported")
from gpuwaste.agent import fold
from gpuwaste.agent.day_file import DayFile
path, names = Path({folder!r}) / "{day}.duckdb", fold.segments(Path({folder!r}))
day = DayFile(path)
told("the day's file open")
day.fold(fold.read_ticks(names[0].path))
told("a quarter of an hour folded")
day.close()
for name in names[1:]:
    day = DayFile(path)
    day.fold(fold.read_ticks(name.path))
    day.close()
told("the rest of the day folded")
fold._compact(path, over=True)
told("the day written anew")
"""


def write_day(folder: Path, segments: int, seed: int) -> None:
    """Write the segments of a day, drawn at random."""
    rng = random.Random(seed)  # noqa: S311 figures, no secrets
    key = RunKey("gw", 9, _DAY_US // 1_000_000)
    sample = Sample(_DAY_US, 0, "", "", "nvml", job_id=9, run_key=key)
    sample = replace(sample, map_source=MapSource.CGROUP, confidence=Confidence.CONFIRMED, procs=1)
    for number in range(segments):
        segment = Segment(folder, number + 1, DAY)
        for tick in range(number * TICKS, (number + 1) * TICKS):
            segment.append([_drawn(sample, gpu, tick, rng) for gpu in range(GPUS)])
        segment.close()


def _drawn(sample: Sample, gpu: int, tick: int, rng: random.Random) -> Sample:
    return replace(
        sample,
        t_utc_us=sample.t_utc_us + tick * _STEP_US,
        mono_us=tick * _STEP_US,
        gpu_uuid=f"GPU-{gpu:08d}",
        util_pct=rng.choice([0.0, 100.0, round(100 * rng.random(), 1)]),
        power_mw=rng.randrange(70_000, 400_000),
        mem_used_b=rng.randrange(80 << 30),
        mem_total_b=80 << 30,
        energy_mj=10**12 + tick * 3_000_000 + rng.randrange(1000),
    )


def measured(folder: Path) -> Iterator[dict[str, str | int]]:
    """Run the child and yield its memory after each part, MB."""
    program = CHILD.format(path=sys.path, folder=str(folder), day=DAY)
    done = subprocess.run([sys.executable, "-IBS", "-c", program], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        part, text = json.loads(line)
        kib = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)}
        yield {"part": part, **{mb: kib[key] // 1024 for key, mb in _KEYS.items()}, "peak_mb": kib["VmHWM"] // 1024}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--segments", type=int, default=96, help="quarters of an hour (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_day(Path(name), options.segments, options.seed)
        rows = list(measured(Path(name)))
    print(f"{'after':<32}{'resident':>9}{'PSS':>6}{'own':>6}{'peak':>6}   MB")
    for row in rows:
        print(f"{row['part']:<32}{row['rss_mb']:>9}{row['pss_mb']:>6}{row['own_mb']:>6}{row['peak_mb']:>6}")
    print(json.dumps({"figure": "agent_fold", "segments": options.segments, "parts": rows}))


if __name__ == "__main__":
    main()
