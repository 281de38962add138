"""What an answer costs: CPU, wall time and memory of reading 100,000 lines of HLO, in a process of its own."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

LINES: Final = 100_000
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
        long, common = Path(folder) / "long.hlo", Path(folder) / "common.hlo"
        long.write_text(_layers(LINES // 10))
        common.write_text(_layers(300))
        answer = _run([sys.executable, "-m", "gpuwaste.cli", "estimate", str(common), "--json"])
        return {"long": json.loads(_run([sys.executable, "-c", _CHILD, str(long)])[0]), "answer_s": answer[1],
                "answer_cpu_s": answer[2]}  # fmt: skip


def text(found: dict[str, Any]) -> str:
    """Return the table."""
    long = found["long"]
    return (
        f"{long['lines']:,} lines of HLO: read in {long['read_cpu_s']:.2f} s of CPU "
        f"({long['read_s']:.2f} s on the clock), {long['peak_mb']:.0f} MB\n"
        f"answer for a program of 3,000 lines: {found['answer_cpu_s']:.2f} s of CPU "
        f"({found['answer_s']:.2f} s on the clock)"
    )


def _run(words: list[str]) -> tuple[str, float, float]:
    import resource  # noqa: PLC0415 - children's times are differences
    import time  # noqa: PLC0415 - same

    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    out = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, time.perf_counter() - start, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


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
