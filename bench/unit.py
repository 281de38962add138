"""Figure: what `make unit` takes: seconds, CPU seconds of all its processes, the slowest tests; beside one process.

Prints a table, the slowest tests, and one line of JSON. CPU seconds hardly depend on what else the host does: on two
quiet cores the wall time is a little more than half of them.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PYTEST: Final = (sys.executable, "-m", "pytest", "-q", "--hypothesis-profile", "unit", "-m", "not long", "tests/unit")
WAYS: Final = {"every core, as make unit": ("-n", "auto", "--dist", "loadscope"), "one process": ()}


class Round(NamedTuple):
    """One run of the tests."""

    wall_s: float
    cpu_s: float
    tests: int
    slowest: list[tuple[float, str]]


def measure(options: tuple[str, ...], slowest: int) -> Round:
    """Run the tests once. Raises CalledProcessError where one fails."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.xml"
        began, before = time.monotonic(), _cpu_s()
        command, given = [*PYTEST, *options, f"--junitxml={report}"], {**os.environ, "NUMBA_DISABLE_JIT": "1"}
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=given)
        wall_s, cpu_s = time.monotonic() - began, _cpu_s() - before
        cases = list(ET.parse(report).getroot().iter("testcase"))  # noqa: S314 our own pytest wrote it
    took = sorted((float(case.get("time", 0)), f"{case.get('classname')}::{case.get('name')}") for case in cases)
    return Round(wall_s, cpu_s, len(cases), took[: -slowest - 1 : -1])


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slowest", type=int, default=10)
    options = parser.parse_args()
    found = {way: [measure(words, options.slowest) for _ in range(options.rounds)] for way, words in WAYS.items()}
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} at the end; the range is that of {options.rounds} rounds")
    for way, rounds in found.items():
        for name, values in (("s", [r.wall_s for r in rounds]), ("CPU s", [r.cpu_s for r in rounds])):
            print(f"{way:<26}{rounds[0].tests:6} tests{min(values):8.1f} to {max(values):.1f} {name}")
    for seconds, name in next(iter(found.values()))[-1].slowest:
        print(f"{seconds:8.2f} s  {name}")
    print(json.dumps({way: [[r.wall_s, r.cpu_s] for r in rounds] for way, rounds in found.items()}))


if __name__ == "__main__":
    main()
