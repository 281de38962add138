"""Compiles the programs of the calibration for an H100 that is not there, and writes XLA's own figure of their memory.

    PYTHON tools/xla_memory.py PLAN.jsonl FOLDER

PYTHON is one with jax[cuda12] 0.10.2 (3 GB, which this project does not install); no GPU and no driver is needed. PLAN
is plan.jsonl of `gpuwaste model calibrate --no-submit`. For each program FOLDER gets ID.json, ID.pre.hlo.gz and
ID.opt.hlo.gz, which `python -m bench estimate --held-out FOLDER` reads. About four seconds a program.
"""

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

TARGET = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 84978434048 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
"""What XLA wants to know of an H100 SXM: NVIDIA's whitepaper and cudaDeviceProp."""
SITE = Path(__file__).parents[1] / "src/gpuwaste/estimate/calibrate/site"


def main() -> int:
    """Compile each program of the plan."""
    plan, folder = Path(sys.argv[1]), Path(sys.argv[2])
    os.environ |= {
        "JAX_PLATFORMS": "cpu",
        "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
        "XLA_FLAGS": "--xla_gpu_autotune_level=0",
    }
    sys.path.insert(0, str(SITE))
    folder.mkdir(parents=True, exist_ok=True)
    place = _place()
    for program in map(json.loads, plan.read_text(encoding="utf-8").splitlines()):
        lowered = _lowered(program, place)
        compiled = lowered.compile()
        memory = compiled.memory_analysis()
        sizes = {name: getattr(memory, name) for name in dir(memory) if name.endswith("in_bytes")}
        for when, text in (("pre", lowered.as_text(dialect="hlo")), ("opt", compiled.as_text())):
            with gzip.open(folder / f"{program['id']}.{when}.hlo.gz", "wt") as file:
                file.write(text)
        facts = {"family": program["family"], "mem": sizes}
        (folder / f"{program['id']}.json").write_text(json.dumps(facts), encoding="utf-8")
        sys.stdout.write(f"{program['id']}\n")
    return 0


def _place() -> Any:
    """Return an H100 as a place of arrays."""
    from jax.experimental import topologies  # noqa: PLC0415 JAX reads its environment first
    from jax.sharding import SingleDeviceSharding  # noqa: PLC0415 JAX reads its environment first

    shape = "1x1x1"
    found = topologies.get_topology_desc(platform="cuda", topology_name=shape, topology=shape, target_config=TARGET)
    return SingleDeviceSharding(found.devices[0])


def _lowered(program: dict[str, Any], place: Any) -> Any:
    """Return a program lowered for the place, as jax_ops.prepare lowers it for the GPU that is there."""
    import jax  # noqa: PLC0415 JAX reads its environment first
    from jax_ops import functions_of  # type: ignore[import-not-found]  # noqa: PLC0415 JAX reads its environment first

    def placed(of: Any) -> Any:
        return jax.ShapeDtypeStruct(of.shape, of.dtype, sharding=place)

    run, step, kept, given = functions_of(program)
    weights = {name: placed(each) for name, each in kept.items()}
    inputs = {name: placed(each) for name, (each, _) in given.items()}
    if program["mode"] == "train":
        return jax.jit(step, donate_argnums=(0, 1)).lower(weights, weights, inputs)
    return jax.jit(run).lower(weights, inputs)


if __name__ == "__main__":
    sys.exit(main())
