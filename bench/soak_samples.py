"""The alternative beside the soak: the same GPUs as samples of ten seconds in a Prometheus, in bytes on its disk.

A day of a few GPUs is written by promtool into real blocks of Prometheus; what a block takes besides its samples is in
the figure, so more GPUs cost a little less each.
"""

import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.core.units import DAY_S
from gpuwaste.testing.fleet_rows import START

EVERY_S: Final = 10
SERIES: Final = ("utilization_ratio", "memory_used_bytes", "power_watts", "energy_joules_total", "processes")
_SEGMENT_S: Final = 1800  # for which a GPU's load stays about the same


def bytes_of_a_gpu_day(gpus: int) -> float | None:
    """Return what a GPU's day takes in Prometheus, None where promtool is not installed."""
    promtool = shutil.which("promtool")
    if promtool is None:
        return None
    with tempfile.TemporaryDirectory(prefix="gwprom-") as name:
        samples, data = Path(name) / "samples", Path(name) / "data"
        with samples.open("w", encoding="ascii") as out:
            for series in SERIES:
                out.write(f"# TYPE gpuwaste_gpu_{series} gauge\n")
                for gpu in range(gpus):
                    out.writelines(_lines(series, gpu))
            out.write("# EOF\n")
        subprocess.run([promtool, "tsdb", "create-blocks-from", "openmetrics", samples, data], check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        return sum(file.stat().st_size for file in data.rglob("*") if file.is_file()) / gpus


def _lines(series: str, gpu: int) -> Iterator[str]:
    """Yield a day of one series of a GPU that trains: a level for half an hour, with some noise around it."""
    rng = random.Random(f"{series} {gpu}")  # noqa: S311 a figure is repeatable
    name = f'gpuwaste_gpu_{series}{{node="n0001",uuid="GPU-{gpu:08x}-1111-4222-8333-444444444444"}}'
    level, energy = 0.0, 0.0
    for at in range(0, DAY_S, EVERY_S):
        if at % _SEGMENT_S == 0:
            level = rng.choice((0.0, 0.4, 0.8, 0.97))
        util = round(min(1.0, max(0.0, level + (rng.gauss(0, 0.05) if level else 0.0))), 2)
        watts = round(60 + 300 * util + rng.gauss(0, 3), 1)
        energy += watts * EVERY_S
        memory = int(level * 8) * 8 * 1024**3
        value = dict(zip(SERIES, (util, memory, watts, round(energy, 3), int(level > 0)), strict=True))[series]
        yield f"{name} {value} {START + at}\n"
