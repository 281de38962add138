"""Measure the programs of plan.jsonl, one after the other, into records.jsonl; stopped at any point, it goes on there.

Runs with the site's Python, which has jax or torch. A program is noted before it starts, so that one which kills the
process is tried twice and then left out. Each line of records.jsonl is one program:
id, status (ok, memory, failed, killed), step_s and its spread, and what it was measured on.
"""

import argparse
import importlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LEAST_S = 0.3  # total of the measured steps
LEAST_STEPS, MOST_STEPS = 5, 2000
PARTS = 5  # of the measured steps, each timed, for the spread
TRIES = 2
CLOCKS = "name,driver_version,clocks.sm,clocks.max.sm,power.limit,memory.used"


def main() -> int:
    """Measure until the plan is done or the budget is spent; exit code 0: done, 3: programs are left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True, help="directory with plan.jsonl; records go there")
    parser.add_argument("--framework", choices=("auto", "jax", "torch"), default="auto")
    parser.add_argument("--budget-s", type=float, required=True, help="seconds after which no program is started")
    parser.add_argument("--memory-gib", type=float, default=0.0, help="leave out programs that need more (0: try all)")
    options = parser.parse_args()
    began = time.monotonic()
    stopping: list[int] = []
    for each in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(each, lambda caught, _: stopping.append(caught))
    backend = load_backend(options.framework)
    plan = read_lines(options.dir / "plan.jsonl")
    records = options.dir / "records.jsonl"
    left = to_do(plan, read_lines(records))
    print(f"{len(plan) - len(left)} of {len(plan)} programs done; {backend.facts()}", flush=True)
    longest = 0.0
    for number, program in enumerate(left):
        spent = time.monotonic() - began
        if stopping or spent + longest > options.budget_s:
            why = "signal" if stopping else "time budget"
            print(f"stopped by {why}: {len(left) - number} programs left; submit the job again to continue", flush=True)
            return 3
        if 0 < options.memory_gib * 2**30 < program["about_b"]:
            append(records, {"id": program["id"], "status": "memory", "words": "larger than the memory budget"})
            continue
        started = time.monotonic()
        append(records, {"id": program["id"], "status": "started"})
        found = measured(backend, program, options.dir)
        state = gpu_state()
        append(records, {"id": program["id"], **found, **backend.facts(), **state, **context(backend, state)})
        longest = max(longest * 0.8, time.monotonic() - started)
        print(f"{program['id']}: {found['status']} {found.get('step_s', '')} {found.get('words', '')}", flush=True)
    print("plan done", flush=True)
    return 0


def load_backend(name: str) -> Any:
    """Return jax_ops or torch_ops: the requested one, else the first whose framework is installed."""
    names = ("jax", "torch") if name == "auto" else (name,)
    missing = []
    for each in names:
        try:
            return importlib.import_module(f"{each}_ops")
        except ImportError as error:
            missing.append(str(error))
    sys.exit(f"no framework to measure with: {'; '.join(missing)}: give a Python with JAX or torch: --python")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file; a last line that a kill has cut is left out."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def to_do(plan: list[dict[str, Any]], records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the programs that have no result and were not started TRIES times, in the plan's order."""
    started: dict[str, int] = {}
    done = set()
    for record in records:
        if record.get("status") == "started":
            started[record["id"]] = started.get(record["id"], 0) + 1
        else:
            done.add(record.get("id"))
    return [each for each in plan if each["id"] not in done and started.get(each["id"], 0) < TRIES]


def append(path: Path, record: dict[str, Any]) -> None:
    """Append one line and sync it to disk."""
    cut = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    with path.open("a", encoding="utf-8") as stream:
        stream.write(("\n" if cut else "") + json.dumps(record, sort_keys=True) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def measured(backend: Any, program: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the record of one program; its text is written to programs/ID."""
    try:
        began = time.perf_counter()
        steps, text = backend.prepare(program)
        steps(2)
        compile_s = time.perf_counter() - began
        one_s = timed(steps, 1)
        count = min(MOST_STEPS, max(LEAST_STEPS, int(LEAST_S / max(one_s, 1e-7))))
        each = max(1, count // PARTS)
        seconds = [timed(steps, each) / each for _ in range(PARTS)]
    except Exception as error:  # noqa: BLE001 one program never ends the job
        status = "memory" if backend.is_out_of_memory(error) else "failed"
        return {"status": status, "words": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    (folder / "programs").mkdir(exist_ok=True)
    file = f"programs/{program['id']}{backend.SUFFIX}"
    (folder / file).write_bytes(text)
    return {
        "status": "ok",
        "family": program["family"],
        "program": file,
        "step_s": statistics.median(seconds),
        "spread": (sorted(seconds)[-2] - sorted(seconds)[1]) / statistics.median(seconds),  # one outlier on each side
        "steps": each * PARTS,
        "compile_s": round(compile_s, 3),
        "at_utc": int(time.time()),
    }


def timed(steps: Any, count: int) -> float:
    """Return the seconds of `count` steps."""
    began = time.perf_counter()
    steps(count)
    return time.perf_counter() - began


def gpu_state() -> dict[str, Any]:
    """Return name, driver and clocks of the first GPU as nvidia-smi reports them right after a measurement."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    command = ["nvidia-smi", f"--query-gpu={CLOCKS}", "--format=csv,noheader,nounits", "-i", visible]
    try:
        out = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    values: list[str | None] = [part.strip() for part in out.splitlines()[0].split(",")] if out else []
    return dict(zip(("gpu", "driver", "clock_mhz", "max_clock_mhz", "power_limit_w", "used_mib"), values))


def context(backend: Any, state: dict[str, Any]) -> dict[str, int]:
    """Return what this process needs besides its arrays: memory in use on the GPU less the framework's own pool."""
    try:
        pool_b = backend.pool_b()
        used_b = int(state["used_mib"]) << 20
    except Exception:  # noqa: BLE001 a figure that this driver or framework does not have
        return {}
    return {} if pool_b is None else {"context_b": max(0, used_b - pool_b)}


if __name__ == "__main__":
    sys.exit(main())
