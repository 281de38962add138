"""Write a JAX program as JSON for `gpuwaste estimate`: its HLO, and XLA's memory figure where JAX has a GPU.

    python probe.py my_training:program -o program.json

`program()` is a function of yours, without arguments. It returns a dict:

    {"step": a function, "args": (arrays or jax.ShapeDtypeStruct, ...),
     "donate": (0, 1)}                     arguments whose memory the results reuse, where it is there

For several batch sizes give it one argument, `program(batch)`, and run the probe with --batch 8,16,32.

With jax.ShapeDtypeStruct no array is made, so a large program takes no memory. No GPU is needed; with one, --compile
adds XLA's own figure for it. Needs JAX 0.4.30 or later.
"""

import argparse
import importlib
import json
import sys
from typing import Any

import jax


def compiled_memory(lowered: Any) -> dict[str, Any] | None:
    """Return XLA's figure for the first GPU, None where there is none or XLA has no figure."""
    if jax.default_backend() != "gpu":
        return None
    found = lowered.compile().memory_analysis()
    if found is None:
        return None
    return {
        "target": str(jax.devices()[0].device_kind)[:200],
        "argument_b": found.argument_size_in_bytes,
        "output_b": found.output_size_in_bytes,
        "alias_b": found.alias_size_in_bytes,
        "temp_b": found.temp_size_in_bytes,
        "code_b": found.generated_code_size_in_bytes,
    }


def written(options: argparse.Namespace, batch: int | None) -> dict[str, Any]:
    """Lower the program, at a batch size where one is given, and return it as gpuwaste reads it."""
    module, _, function = options.program.partition(":")
    make = getattr(importlib.import_module(module), function or "program")
    parts = make() if batch is None else make(batch)
    lowered = jax.jit(parts["step"], donate_argnums=parts.get("donate", ())).lower(*parts["args"])
    return {
        "gpuwaste_program": 1, "name": options.program[:200], "source": "jax", "hlo": lowered.as_text(dialect="hlo"),
        "compiled": compiled_memory(lowered) if options.compile else None, "batch": batch,
        "notes": [f"jax {jax.__version__}"],
    }  # fmt: skip


def main() -> int:
    """Lower the program and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="module:function")
    parser.add_argument("-o", "--output", help="file to write (default: stdout)")
    parser.add_argument("--batch", help="batch sizes, separated by commas: program(batch) is called with each")
    parser.add_argument("--compile", action="store_true", help="compile for this host's GPU, for XLA's memory figure")
    options = parser.parse_args()
    sys.path.insert(0, "")
    if options.batch:
        programs = [written(options, int(batch)) for batch in options.batch.split(",")]
        text = json.dumps({"gpuwaste_programs": 1, "programs": programs})
    else:
        text = json.dumps(written(options, None))
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    else:
        sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
