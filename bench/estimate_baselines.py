"""Three simpler ways to the steps of GPUs that were left out: roofline, additive model with a process, trees.

- Roofline: of each operation the longer of FLOPs / peak and bytes / bandwidth, by data sheet, and nothing else.
- NNLS and GP: the product's model of a calibrated type (`time_fit.fit_model`), which needs 50 programs where a GPU has
  16 steps at most: fitted to the steps of all other GPUs, each multiplied by the ratio of the two GPUs' rooflines. It
  has seen the same models on other GPUs, which nothing else here has; without the model too, 50 are not left.
- Trees: XGBoost on log(seconds / roofline) of single operations of the other GPUs, added up over the step. The least
  latency of a file, which is the host's, is subtracted; operations that are mostly that are left out.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import xgboost
from numpy.typing import NDArray

from gpuwaste.estimate.program import Op, Program, op_sums
from gpuwaste.estimate.public.dimensions import product
from gpuwaste.estimate.public.operators import moved_kind
from gpuwaste.models.public_times.fit_all import LAUNCH_S, PublicMeasurements
from gpuwaste.models.public_times.judge import JudgedStep, least
from gpuwaste.models.public_times.measured_steps import TimedStep
from gpuwaste.models.time_fit import fit_model, measurements
from gpuwaste.slurm.gpu_rates import peak_of, published_flops
from gpuwaste.slurm.gpu_types import GpuType, device

Floats = NDArray[np.float64]
SAMPLE: Final = 3000  # operations of each file and GPU
KINDS: Final = ("mm", "bmm", "elem", "act", "softmax", "softmax long", "ln", "ln long")
HOST: Final = 0.5  # share of a latency above which it is mostly the host's
WAYS: Final = ("roofline", "NNLS and GP", "trees")


def judged_baselines(of: PublicMeasurements, seed: int) -> dict[str, list[JudgedStep]]:
    """Return the steps with the time that each way computes, on GPUs that it has not seen."""
    asked = [step for step in of.steps if step.case in of.graphs]
    programs = {(step.case, step.layers): of.graphs.program(step.case, step.layers) for step in asked}
    found: dict[str, list[JudgedStep]] = {way: [] for way in WAYS}
    for gpu in sorted({step.gpu for step in asked}):
        steps = [step for step in asked if step.gpu == gpu]
        trees = _trees(of, gpu, seed)
        for step in steps:
            program = programs[step.case, step.layers]
            found["roofline"].append(JudgedStep(step, sheet_s(program, device(gpu))))
            found["trees"].append(JudgedStep(step, _tree_seconds(trees, program, device(gpu))))
        found["NNLS and GP"] += _additive([step for step in asked if step.gpu != gpu], steps, programs, seed)
    return found


def sheet_s(program: Program, gpu: GpuType) -> float:
    """Return the least seconds of a step that the data sheet allows."""
    peak = peak_of(gpu, "f32")
    return sum(
        op.trips * max(op.flops / peak, (op.bytes_read + op.bytes_written) / gpu.bandwidth_b_s) for op in program.ops
    )


def _additive(
    learnt: Sequence[TimedStep], asked: Sequence[TimedStep], programs: dict[tuple[str, int], Program], seed: int
) -> list[JudgedStep]:
    """Return the steps of one GPU from those of others, by the product's own model."""
    gpu = asked[0].gpu
    rows = []
    for step in learnt:
        program = programs[step.case, step.layers]
        ratio = sheet_s(program, device(gpu)) / sheet_s(program, device(step.gpu))
        rows.append((op_sums(program), step.model, step.step_s * ratio, False))
    model = fit_model(gpu, measurements(rows), seed=seed)
    sums = [op_sums(programs[step.case, step.layers]) for step in asked]
    logs, _ = model.predict(sums, [step.model for step in asked])
    return [JudgedStep(step, float(np.exp(log))) for step, log in zip(asked, logs, strict=True)]


def _trees(of: PublicMeasurements, without: str, seed: int) -> xgboost.XGBRegressor:
    """Return trees fitted to the operations of the other GPUs."""
    rng = np.random.default_rng(seed)
    parts = []
    for each in of.products:
        one = each.of
        work = _Work(np.array([one.batch, one.rows, one.inner, one.columns]), one.flops, one.bytes)
        parts.append(_Learnt(each.gpu, each.kind, work, each.seconds, least(of.products, each)))
    for moved in of.vectors:
        work = _Work(np.ones((4, len(moved.of))), np.zeros_like(moved.of), moved.of)
        parts.append(_Learnt(moved.gpu, moved.kind, work, moved.seconds, least(of.vectors, moved)))
    tables, targets = zip(*(each.rows(rng) for each in parts if each.gpu != without), strict=True)
    trees = xgboost.XGBRegressor(
        n_estimators=300, max_depth=6, learning_rate=0.08, tree_method="hist", n_jobs=1, random_state=seed
    )
    return trees.fit(np.concatenate(tables), np.concatenate(targets))


class _Work(NamedTuple):
    """Operations [n]: their sizes [4, n], FLOPs and bytes."""

    sizes: Floats
    flops: Floats
    moved: Floats

    def features(self, kind: str, gpu: GpuType) -> Floats:
        """Return logarithms of sizes, FLOPs and bytes, and what is known of the GPU, by operation [n, 12]."""
        sheet = (peak_of(gpu, "f32"), gpu.bandwidth_b_s, gpu.processors, gpu.board_w, published_flops(gpu, "f32"))
        many = len(self.moved)
        rows = [*np.log(self.sizes), np.log1p(self.flops), np.log(self.moved)]
        return np.array([*rows, *(np.full(many, np.log(each)) for each in sheet), np.full(many, KINDS.index(kind))]).T

    def roofline_s(self, gpu: GpuType) -> Floats:
        """Return the seconds of each that the data sheet allows."""
        found: Floats = np.maximum(self.flops / peak_of(gpu, "f32"), self.moved / gpu.bandwidth_b_s)
        return found


class _Learnt(NamedTuple):
    """Operations of one file and one GPU."""

    gpu: str
    kind: str
    work: _Work
    seconds: Floats
    host_s: float

    def rows(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return features and logarithms of seconds over roofline of a sample."""
        places = rng.permutation(np.flatnonzero(self.seconds > self.host_s / HOST))[:SAMPLE]
        work = _Work(self.work.sizes[:, places], self.work.flops[places], self.work.moved[places])
        gpu = device(self.gpu)
        target = np.log((self.seconds[places] - self.host_s) / work.roofline_s(gpu))
        return work.features(self.kind, gpu), target


def _tree_seconds(trees: xgboost.XGBRegressor, program: Program, gpu: GpuType) -> float:
    by_kind: dict[str, list[tuple[Op, tuple[float, ...]]]] = defaultdict(list)
    for op in program.ops:
        if op.flops or op.bytes_read + op.bytes_written:
            kind, sizes = _kind_of(op)
            by_kind[kind].append((op, sizes))
    total = 0.0
    for kind, pairs in by_kind.items():
        ops = [op for op, _ in pairs]
        flops = np.array([op.flops if kind in {"mm", "bmm"} else 0.0 for op in ops])
        moved = np.array([op.bytes_read + op.bytes_written for op in ops])
        work = _Work(np.array([sizes for _, sizes in pairs]).T, flops, moved)
        seconds = np.exp(trees.predict(work.features(kind, gpu))) * work.roofline_s(gpu) + LAUNCH_S
        total += float((seconds * np.array([op.trips for op in ops])).sum())
    return total


def _kind_of(op: Op) -> tuple[str, tuple[float, ...]]:
    """Return the measured kind that an operation counts as, and its sizes; a kind that was not measured is `elem`."""
    if op.kind in {"mm", "bmm"}:
        return op.kind, product(op)[:4]
    kind = moved_kind(op.kind, op.shapes[0][-1] if op.shapes and op.shapes[0] else 0)
    return kind if kind in KINDS else "elem", (1.0, 1.0, 1.0, 1.0)
