"""What an answer costs: CPU, wall time and memory of reading 100,000 lines of HLO, and of whole commands.

Each runs in a process of its own. The commands answer with memory and, by the shipped coefficients, with times for all
types of GPU of the table; no type is calibrated. 300 layers of the common program are the same, those of the varied
one have 400 different sizes, each of which is computed for each type.
"""

import json
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any, Final

from gpuwaste.estimate import public
from gpuwaste.estimate.public.coefficients import FILE

LINES: Final = 100_000
VARIED: Final = 400
"""Different products of the program that has no two equal ones."""
GOALS: Final = {"s": 1.0, "mb": 300.0, "coefficients_mb": 2.0}
_COMMAND: Final = """
import json, resource, subprocess, sys, time
started = time.perf_counter()
said = json.loads(subprocess.run(sys.argv[1:], check=True, capture_output=True, text=True).stdout)
wall, used = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"s": wall, "cpu_s": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}))
"""
_CHILD: Final = """
import json, resource, sys, time
from pathlib import Path
cpu, wall = time.process_time(), time.perf_counter()
from gpuwaste.estimate.reading import read_program
from gpuwaste.estimate.program_memory import estimate_memory, fits
path = Path(sys.argv[1])
started_cpu, started = time.process_time(), time.perf_counter()
program = read_program(path)
read_cpu, read = time.process_time(), time.perf_counter()
fits(estimate_memory(program))
print(json.dumps({
    "lines": sum(1 for _ in path.open()), "read_s": read - started, "read_cpu_s": read_cpu - started_cpu,
    "estimate_cpu_s": time.process_time() - read_cpu, "operations": len(program.ops),
    "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def measured() -> dict[str, Any]:
    """Return what reading a long program and answering for a common one takes."""
    with tempfile.TemporaryDirectory() as folder:
        long, common, varied = (Path(folder) / f"{name}.hlo" for name in ("long", "common", "varied"))
        long.write_text(_layers(LINES // 10))
        common.write_text(_layers(300))
        varied.write_text(_products(VARIED))
        return {
            "long": _child(_CHILD, str(long)),
            "answer": _answered(common),
            "varied": _answered(varied),
            "coefficients_mb": len((resources.files(public) / FILE).read_bytes()) / 1e6,
        }


def text(found: dict[str, Any]) -> str:
    """Return the table."""
    long = found["long"]
    return (
        f"{long['lines']:,} lines of HLO: read in {long['read_cpu_s']:.2f} s of CPU "
        f"({long['read_s']:.2f} s on the clock), {long['peak_mb']:.0f} MB\n"
        f"{_answer_text('a program of 3,000 lines', found['answer'])}\n"
        f"{_answer_text(f'{VARIED} different products', found['varied'])}\n"
        f"coefficients that are shipped: {found['coefficients_mb']:.4f} MB{_missed(found, 'coefficients_mb')}"
    )


def _answer_text(what: str, found: dict[str, float]) -> str:
    return (
        f"answer for {what}, all GPU types: {found['cpu_s']:.2f} s of CPU ({found['s']:.2f} s on the clock"
        f"{_missed(found, 's')}), {found['mb']:.0f} MB{_missed(found, 'mb')}"
    )


def _missed(found: dict[str, Any], key: str) -> str:
    return "" if found[key] <= GOALS[key] else f", goal {GOALS[key]:g} missed"


def _answered(program: Path) -> dict[str, Any]:
    words = ["-m", "gpuwaste.cli", "estimate", str(program), "--models-dir", str(program.parent / "none"), "--json"]
    return _child(_COMMAND, sys.executable, *words)


def _child(code: str, *words: str) -> dict[str, Any]:
    out = subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(out)
    return found


def _products(count: int) -> str:
    """Return products of different sizes, each with an activation of its own size."""
    product = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    lines = ["HloModule products", "", "ENTRY main {"]
    for n in range(count):
        rows, inner, columns = 128 + 8 * n, 512 + 4 * n, 256 + 16 * n
        lines += [
            f"  x{n} = f32[{rows},{inner}]{{1,0}} parameter({2 * n})",
            f"  w{n} = f32[{inner},{columns}]{{1,0}} parameter({2 * n + 1})",
            f"  d{n} = f32[{rows},{columns}]{{1,0}} dot(x{n}, w{n}), {product}",
            f"  t{n} = f32[{rows},{columns}]{{1,0}} tanh(d{n})",
        ]
    results = [f"f32[{128 + 8 * n},{256 + 16 * n}]{{1,0}}" for n in range(count)]
    names = ", ".join(f"t{n}" for n in range(count))
    return "\n".join([*lines, f"  ROOT r = ({', '.join(results)}) tuple({names})", "}"]) + "\n"


def _layers(count: int) -> str:
    """Return a network of many layers: a product, a bias, an activation, a sum, as JAX lowers them."""
    product = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    lines = ["HloModule layers", "", "ENTRY main {", "  x0 = f32[256,512]{1,0} parameter(0)"]
    for n in range(count):
        where = f'metadata={{op_name="jit(step)/layer{n}/dot_general" source_file="model.py" source_line={n}}}'
        lines += [
            f"  w{n} = f32[512,512]{{1,0}} parameter({2 * n + 1}), sharding={{replicated}}",
            f"  b{n} = f32[512]{{0}} parameter({2 * n + 2}), sharding={{replicated}}",
            f"  d{n} = f32[256,512]{{1,0}} dot(x{n}, w{n}), {product}, {where}",
            f"  e{n} = f32[256,512]{{1,0}} broadcast(b{n}), dimensions={{1}}",
            f"  s{n} = f32[256,512]{{1,0}} add(d{n}, e{n})",
            f"  z{n} = f32[] constant(0)",
            f"  y{n} = f32[256,512]{{1,0}} broadcast(z{n}), dimensions={{}}",
            f"  m{n} = f32[256,512]{{1,0}} maximum(s{n}, y{n})",
            f"  t{n} = f32[256,512]{{1,0}} tanh(m{n})",
            f"  x{n + 1} = f32[256,512]{{1,0}} add(t{n}, x{n})",
        ]
    return "\n".join([*lines, f"  ROOT r = f32[256,512]{{1,0}} negate(x{count})", "}"]) + "\n"
