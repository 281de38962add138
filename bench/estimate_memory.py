"""Memory of programs beside XLA's own figure: with that figure, and by liveness before and after optimization."""

import gzip
import json
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any, Final

from msgspec.structs import replace

from gpuwaste.estimate.program import CompiledMemory, Program, peak_b
from gpuwaste.estimate.program_memory import MemoryEstimate, estimate_memory
from gpuwaste.estimate.readers import hlo
from gpuwaste.estimate.readers.neutral import believed

WORKSPACE_B: Final = 32 << 20
"""cuBLAS's workspace on Hopper; in XLA's figure where it was told to take cuBLAS ("triton": false in the file)."""
WAYS: Final = ("with XLA's figure", "after optimization", "before compilation", "before, with workspace")


def measured(folder: Path) -> dict[str, Any]:
    """Return a row for each program, and the summary of each way."""
    rows = [_row(path) for path in sorted(folder.glob("*.json"))]
    summary = {}
    for place, way in enumerate(WAYS):
        errors = [row["errors"][place] for row in rows]
        shares = sorted(abs(error) for error in errors)
        summary[way] = {
            "mean": round(sum(shares) / len(shares), 4),
            "median": round(shares[len(shares) // 2], 4),
            "lowest": round(min(errors), 4),
            "highest": round(max(errors), 4),
        }
    inside = sum(row["inside"] for row in rows)
    return {"rows": rows, "summary": {"programs": len(rows), "inside_range": inside, **summary}}


def held_out(folder: Path, when: str = "pre") -> dict[str, Any]:
    """Return errors on programs on which no rule was written (tools/xla_memory.py), by family.

    Before optimization ("pre") or after it ("opt").
    """
    errors: dict[str, list[float]] = {}
    outside: Counter[str] = Counter()
    for path in sorted(folder.glob("*.json")):
        facts = json.loads(path.read_text())
        need = _compiled(facts["mem"]).need_b
        estimate = estimate_memory(_read(path, when))
        errors.setdefault(facts["family"], []).append(estimate.program_b / need - 1)
        outside.update(each for each in (facts["family"], "all") if not _holds(estimate, need))
    whole = [error for each in errors.values() for error in each]
    return {
        name: {
            "programs": len(each),
            "mean": round(sum(map(abs, each)) / len(each), 4),
            "median": round(median(map(abs, each)), 4),
            "lowest": round(min(each), 4),
            "highest": round(max(each), 4),
            "inside": 1 - outside[name] / len(each),
        }
        for name, each in [*sorted(errors.items()), ("all", whole)]
    }


def held_out_text(found: dict[str, Any], title: str) -> str:
    """Return a row for each family."""
    heads = ("programs", "mean", "median", "lowest", "highest", "inside")
    lines = [f"{title:<16}" + "".join(f"{head:>12}" for head in heads)]
    lines += [
        f"{name:<16}{row['programs']:>12}{row['mean']:>12.1%}{row['median']:>12.1%}"
        f"{row['lowest']:>+12.1%}{row['highest']:>+12.1%}{row['inside']:>12.1%}"
        for name, row in found.items()
    ]
    return "\n".join(lines)


def text(found: dict[str, Any]) -> str:
    """Return the tables."""
    lines = [f"{'program':<16}{'XLA MB':>10}" + "".join(f"{way:>25}" for way in WAYS)]
    lines += [
        f"{row['name']:<16}{row['need_b'] / 1e6:>10.2f}" + "".join(f"{error:>+25.1%}" for error in row["errors"])
        for row in found["rows"]
    ]
    summary = found["summary"]
    lines += [
        f"{key:<26}" + "".join(f"{summary[way][key]:>25.1%}" for way in WAYS)
        for key in ("mean", "median", "lowest", "highest")
    ]
    lines.append(
        "XLA's figure without the workspace inside the program's own range before compilation: "
        f"{summary['inside_range']} of {summary['programs']}"
    )
    return "\n".join(lines)


def _row(path: Path) -> dict[str, Any]:
    facts = json.loads(path.read_text())
    compiled = _compiled(facts["mem"])
    before, after = _read(path, "pre"), _read(path, "opt")
    with_figure = believed(replace(before, compiled=compiled))
    need = compiled.need_b
    workspace = WORKSPACE_B if facts.get("triton") is False else 0
    found = (
        estimate_memory(with_figure).program_b,
        peak_b(after.buffers),
        peak_b(before.buffers),
        peak_b(before.buffers) + workspace,
    )
    inside = _holds(estimate_memory(before), need - workspace)
    return {"name": path.stem, "need_b": need, "errors": [each / need - 1 for each in found], "inside": inside}


def _holds(estimate: MemoryEstimate, need_b: int) -> bool:
    """Return whether a program's own range holds XLA's figure."""
    return estimate.program_low_b <= need_b <= estimate.program_high_b


def _compiled(said: dict[str, int]) -> CompiledMemory:
    return CompiledMemory(
        target="H100",
        argument_b=said["argument_size_in_bytes"],
        output_b=said["output_size_in_bytes"],
        alias_b=said["alias_size_in_bytes"],
        temp_b=said["temp_size_in_bytes"],
        code_b=said["generated_code_size_in_bytes"],
    )


def _read(path: Path, when: str) -> Program:
    with gzip.open(path.with_name(f"{path.stem}.{when}.hlo.gz"), "rt") as lines:
        return hlo.read_text(lines, path.stem)
