"""Figure: what reading a batch of hours costs with msgspec and with pydantic, and their imports.

Decoding is CPU time of this process, the median of the rounds; an import is that of a fresh interpreter, with what it
adds to the resident memory. Both have the bounds of one declaration (pydantic none on the keys of maps); the last row
of the table also compares fields and makes the record, and the first checks nothing.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec
from pydantic import ConfigDict, Field, create_model

from bench.ingest import make_hour
from gpuwaste.core.typed import decoder
from gpuwaste.ledger.hour import HOUR_CODEC, encode_hour, hour_from_line

_IMPORT = """
import json, re, dataclasses, typing, time
def pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])
before, begun = pages(), time.process_time()
from {module} import {name}
print((time.process_time() - begun) * 1e3, (pages() - before) * 4096 / 1e6)
"""


def pydantic_reader() -> Callable[[bytes], Any]:
    """Return a reader of a pydantic model with the bounds of the same declaration."""
    schema = msgspec.json.schema(HOUR_CODEC.struct)
    properties = next(iter(schema["$defs"].values()))["properties"]
    bounds = {"minimum": "ge", "maximum": "le", "pattern": "pattern", "maxProperties": "max_length"}
    members: dict[str, Any] = {}
    for field in msgspec.structs.fields(HOUR_CODEC.struct):
        found = {
            ours: properties[field.name][theirs] for theirs, ours in bounds.items() if theirs in properties[field.name]
        }
        if "pattern" in found:
            found["pattern"] = found["pattern"].replace("\\Z", r"\z")
        default = ... if field.default is msgspec.NODEFAULT else field.default
        members[f"f_{field.name}"] = (_bare(field.type), Field(default, alias=field.name, **found))
    read: Callable[[bytes], Any] = create_model(
        "Hour", __config__=ConfigDict(strict=True), **members
    ).model_validate_json
    return read


def _bare(kind: Any) -> Any:
    """Return the type without msgspec's annotations, which pydantic does not read."""
    parts: tuple[Any, ...] = getattr(kind, "__args__", ())
    if hasattr(kind, "__metadata__"):
        return _bare(kind.__origin__)
    if len(parts) == 2 and parts[1] is type(None):
        return _bare(parts[0]) | None
    return dict[str, float] if getattr(kind, "__origin__", None) is dict else kind


def cost(read: Callable[[bytes], Any], lines: list[bytes], rounds: int) -> list[float]:
    """Return microseconds of CPU a row, by round."""
    found = []
    for _ in range(rounds):
        begun = time.process_time()
        for line in lines:
            read(line)
        found.append((time.process_time() - begun) / len(lines) * 1e6)
    return found


def imported(module: str, name: str, rounds: int) -> tuple[float, float]:
    """Return the median milliseconds of CPU and MB that an import adds to an interpreter with json and re."""
    argv = [sys.executable, "-c", _IMPORT.format(module=module, name=name)]
    runs = [subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split() for _ in range(rounds)]
    return statistics.median(float(run[0]) for run in runs), statistics.median(float(run[1]) for run in runs)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1500, help="a batch of 1 MiB")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    rng = random.Random(7)  # noqa: S311 a figure is repeatable
    lines = [encode_hour(make_hour(rng, index, 1)).line for index in range(options.rows)]
    readers: dict[str, Callable[[bytes], Any]] = {
        "json.loads, nothing checked": json.loads,
        "msgspec, fields checked": decoder(HOUR_CODEC.struct).decode,
        "pydantic, fields checked": pydantic_reader(),
        "ours: an AllocationHour": hour_from_line,
    }
    figures: dict[str, Any] = {}
    print(f"{'reader':<30} {'us a row':>9} {'least':>7} {'most':>7}")
    for name, read in readers.items():
        found = cost(read, lines, options.rounds)
        figures[name.partition(",")[0].partition(":")[0]] = round(statistics.median(found), 2)
        print(f"{name:<30} {statistics.median(found):>9.2f} {min(found):>7.2f} {max(found):>7.2f}")
    for module, name in (("msgspec", "Struct"), ("pydantic", "BaseModel")):
        ms, mb = imported(module, name, options.rounds)
        figures[f"import {module}"] = {"cpu_ms": round(ms, 1), "rss_mb": round(mb, 1)}
        print(f"import {module:<23} {ms:>9.1f} ms {mb:>6.1f} MB")
    print(json.dumps({"bench": "codec", "us_a_row": figures}))


if __name__ == "__main__":
    main()
