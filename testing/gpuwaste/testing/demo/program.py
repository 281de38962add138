"""The demo's program: a training step in JAX, estimated from its file, planned, run once, and planned again.

The simulated GPUs execute nothing, so no GPU type is calibrated here: times are those of public measurements until a
run of the program itself has ended. The probe runs where JAX is installed (`make frameworks`); elsewhere the files
that it wrote are used.
"""

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.units import format_size, say_duration
from gpuwaste.testing.demo.checks import DemoCheck
from gpuwaste.testing.demo.ending import Ending
from gpuwaste.testing.frameworks import framework_python
from gpuwaste.testing.patience import patient
from gpuwaste.testing.running_site import Site

DATA: Final = Path(__file__).with_name("data")
BATCHES: Final = {"step.json": 4096, "large.json": 1 << 24}
"""Batch size of each file that the probe writes of data/train_step.py."""
INPUTS, HIDDEN, CLASSES = 784, 1024, 10
STEPS: Final = 600
_F32_B: Final = 4
_USER: Final = "alice"
_GPU: Final = "a100"  # of 40 or 80 GB, as sites name it
_GPU_B: Final = 40 << 30
_PEAK_FLOPS: Final = 156e12  # TF32 of the A100 by its data sheet, in which XLA multiplies f32
_LOAD: Final = "--phase 12:80:600"
_SCRIPT: Final = "job.sbatch"
_PROBE_S: Final = 120.0
_ACCOUNTED_S: Final = 90.0
_NO_CANDIDATE: Final = 3


def flops(batch: int) -> int:
    """Return FLOPs of one step, by hand: two products forward, gradients of both weights and of the layer."""
    first, second = INPUTS * HIDDEN, HIDDEN * CLASSES
    return 2 * batch * (2 * first + 3 * second)


def least_b(batch: int) -> int:
    """Return bytes of arrays that are all there at the same time: weights, images, hidden layer."""
    return _F32_B * (INPUTS * HIDDEN + HIDDEN * CLASSES + batch * INPUTS + batch * HIDDEN)


def probed(python: str, probe: str, batch: int) -> str:
    """Run a probe on the demo's training step and return what it writes."""
    with tempfile.TemporaryDirectory(prefix="gwprobe") as folder:
        for name, text in (("probe.py", probe), ("train_step.py", (DATA / "train_step.py").read_text("utf-8"))):
            (Path(folder) / name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [python, "probe.py", "train_step:program", "--batch", str(batch)],
            cwd=folder,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            capture_output=True,
            text=True,
            timeout=patient(_PROBE_S),
            check=True,
        )
    return done.stdout


def estimate_and_plan(site: Site, say: Callable[[str], None]) -> Ending:
    """Estimate the program, plan a script that is tied to it before and after its first run, and a batch too large."""
    _write_programs(site, say)
    words = ["estimate", "step.json", "--gpu", _GPU, "--steps", str(STEPS)]
    shown = {f"{_USER}$ gpuwaste {shlex.join(words)}": site.gpuwaste(*words, user=_USER).stdout}
    estimate = site.json(*words, user=_USER)
    choices = site.json(*words, "--goal", "smallest", user=_USER)
    _write_script(site, _SCRIPT, choices["script"], "step.json")
    _write_script(site, "large.sbatch", [f"#SBATCH --gres=gpu:{_GPU}:1"], "large.json")
    say(f"{_USER} plans two scripts: one that fits, and one with a batch size too large for any GPU")
    before = _planned(site, shlex.split(choices["plan"])[2:])
    large = _planned(site, ["large.sbatch"])
    job_id = int(site.cluster.run(["sbatch", "--parsable", _SCRIPT], _USER).stdout)
    (row,) = site.cluster.wait_accounted(job_id, _ACCOUNTED_S)
    site.wait_reported(job_id, 1)
    elapsed_s = int(row["End"]) - int(row["Start"])
    say(f"job {job_id} of the program ended after {elapsed_s} s; {_USER} plans the next one")
    shown[f"{_USER}$ gpuwaste plan {_SCRIPT}   (after its first run)"] = _plan_text(site)
    after = _planned(site, [_SCRIPT])
    checks = (*_of_file(estimate), *_of_plans(before, large), _of_runs(after, elapsed_s))
    return Ending(shown, checks)


def _write_programs(site: Site, say: Callable[[str], None]) -> None:
    """Put the program's files into the user's home, from the probe itself where JAX is."""
    python = framework_python("jax")
    if python is None:
        say("JAX is not installed (make frameworks): using the program files in the repository")
    else:
        say(f"the JAX probe writes {_USER}'s training step at two batch sizes, without a GPU")
    command = site.runtime.command("estimate", "probe", "jax")  # reads no configuration
    probe = "" if python is None else site.cluster.run(command, _USER, env=site.runtime.env).stdout
    for name, batch in BATCHES.items():
        text = (DATA / name).read_text("utf-8") if python is None else probed(python, probe, batch)
        site.cluster.run(["tee", name], _USER, stdin=text)


def _write_script(site: Site, name: str, lines: list[str], program: str) -> None:
    more = ["#SBATCH --time=10", "#SBATCH --output=/dev/null", f"#GPUWASTE program={program} steps={STEPS}"]
    site.cluster.run(["tee", name], _USER, stdin="\n".join(["#!/bin/bash", *lines, *more, site.load(_LOAD), ""]))


def _planned(site: Site, words: list[str]) -> Mapping[str, Any]:
    """Return a plan's document, whatever its exit code; words may be options of sbatch after --."""
    config = str(site.config_path("hub"))
    argv = site.runtime.command("plan", "--json", "--config", config, *words)
    done = site.cluster.run(argv, _USER, env=site.runtime.env, check=False, timeout_s=_PROBE_S)
    document: dict[str, Any] = json.loads(done.stdout)
    return {**document, "exit": done.returncode}


def _plan_text(site: Site) -> str:
    return site.gpuwaste("plan", _SCRIPT, user=_USER, check=False).stdout


def _of_file(estimate: Mapping[str, Any]) -> list[DemoCheck]:
    """Hold the estimate of the file against arithmetic by hand."""
    batch = BATCHES["step.json"]
    by_hand, said = flops(batch), estimate["program"]["flops"]
    least, (on_gpu, *_) = least_b(batch), estimate["gpus"]
    low, high = estimate["memory_low_b"], estimate["memory_high_b"]
    return [
        DemoCheck("FLOPs of a training step", f"{by_hand:,} by hand", f"{said:,.0f}", said == by_hand),
        DemoCheck(
            "GPU memory of a training step",
            f"{format_size(least)} of arrays at least",
            f"{format_size(low)} to {format_size(high)}, {on_gpu['fits']}",
            least <= estimate["program_b"] and least <= high <= _GPU_B and on_gpu["fits"] == "fits",
        ),
        DemoCheck(
            "time of a step before any run",
            f"{by_hand / _PEAK_FLOPS:.2g} s at the peak of the GPU at least, nothing calibrated",
            on_gpu["refused"] or f"{on_gpu['step_s']:.2g} s {on_gpu['basis']}",
            (on_gpu["step_s"] or 0.0) > by_hand / _PEAK_FLOPS and "from public" in on_gpu["basis"],
        ),
    ]


def _of_plans(before: Mapping[str, Any], large: Mapping[str, Any]) -> list[DemoCheck]:
    """Hold the plans before the first run against what the GPU has."""
    part = _as_asked(before)["program"]
    chosen = next((one for one in before["candidates"] if one["number"] == before["chosen"]), None)
    refused = _as_asked(large)
    least, why = least_b(BATCHES["large.json"]), "; ".join(refused["reasons"])
    return [
        DemoCheck(
            "plan of the estimated request",
            f"1 {_GPU}, fits, run time by the program's operations",
            f"{part['gpus']} {part['gpu']}, {part['fits']}, run time by {part['estimator'] or 'nothing'}",
            chosen is not None
            and (part["gpus"], part["gpu"], part["fits"], part["steps"]) == (1, _GPU, "fits", STEPS)
            and part["estimator"] in {"white box", "history"},
        ),
        DemoCheck(
            f"plan of batch size {BATCHES['large.json']:,}",
            f"{format_size(least)} of arrays, GPU of 40 or 80 GB",
            f"{refused['status']}: {why}",
            large["exit"] == _NO_CANDIDATE and refused["status"] == "invalid" and "program needs at least" in why,
        ),
    ]


def _of_runs(after: Mapping[str, Any], elapsed_s: int) -> DemoCheck:
    """Hold the plan after the first run against accounting."""
    part = _as_asked(after)["program"]
    run_s, step_s = part["run_s"] or 0.0, part["step_s"] or 0.0
    return DemoCheck(
        "plan after the first run of the program",
        f"own runs: {elapsed_s} s in sacct, {STEPS} steps",
        f"{part['estimator'] or 'nothing'}: {say_duration(run_s)} of {part['runs']} run, {step_s:.3g} s a step",
        part["estimator"] == "own runs" and abs(run_s - elapsed_s) < 1 and abs(step_s * STEPS - elapsed_s) < 1,
    )


def _as_asked(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one for one in plan["candidates"] if one["kind"] == "as_asked")
    return found
