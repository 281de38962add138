"""A small site for the tests of predictions: a history of one user, and a model whose formula can be read."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.features import FEATURE_VERSION, FEATURES, feature_hash
from gpuwaste.advice.predict.manifest import Manifest, Origin, TargetModel
from gpuwaste.core.units import HOUR_S
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.history.job_table import GpuUse
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.submit.job_request import JobRequest

NAMES = tuple(feature.name for feature in FEATURES)
COLUMN = {name: place for place, name in enumerate(NAMES)}
NOW = 1_750_000_000
GIB = 1 << 30
TRAIN = JobRequest(
    user="alice", submit=NOW, account="physics", partition="gpu", name="train",
    time_limit_s=12 * HOUR_S, nodes=1, cpus=8, mem_b=64 * GIB, gpus=4, gpu_type="a100",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run of `train` in the past."""

    outcome: Outcome = Outcome.COMPLETED
    run_s: float = 1200.0
    max_rss_b: float | None = None
    active: int | None = None
    used: float = 0.5


def history(runs: Sequence[Run], request: JobRequest = TRAIN) -> HistoryState:
    """Return the state after runs of this request, each submitted when the one before it had ended."""
    state = HistoryState()
    submit = NOW - 100 * HOUR_S
    for number, run in enumerate(runs, 1):
        past = replace(request, submit=submit)
        state.submitted(past, number)
        state.started(number, submit, submit + 10)
        end = submit + 10 + int(run.run_s)
        state.ended(number, submit, end, run.run_s, run.outcome, max_rss_b=run.max_rss_b)
        if run.active is not None:
            state.gpu_use(number, submit, GpuUse(run.used, run.active, 1.0, end + 60))
        submit = end + 100
    return state


@dataclass
class FormulaModel:
    """A model of given formulas: `logits` by feature for failure, and fixed quantiles; unknown features count 0."""

    logits: Mapping[str, float] = field(default_factory=dict)
    bias: float = 0.0
    walltime_s: tuple[float, ...] = ()
    memory_b: tuple[float, ...] = ()
    gpus: tuple[float, ...] = ()
    origin: Origin = "site"
    thresholds: Mapping[str, float] = field(default_factory=lambda: {"warn": 0.5, "reject": 0.95})
    references: Mapping[str, float] = field(default_factory=dict)
    calls: list[tuple[str, int]] = field(default_factory=list)
    hash: str = "ab" * 32

    @property
    def manifest(self) -> Manifest:
        """The manifest of these formulas."""
        quantities = {"walltime": self.walltime_s, "memory": self.memory_b, "gpus_needed": self.gpus}
        levels = {"walltime": (0.5, 0.9, 0.95, 0.99), "memory": (0.5, 0.9, 0.95, 0.99), "gpus_needed": (0.5, 0.9, 0.95)}
        models = [TargetModel("failure", "failure.onnx", thresholds=self.thresholds, rows=1000)]
        models += [TargetModel(n, f"{n}.onnx", quantiles=levels[n], rows=900) for n, q in quantities.items() if q]
        return Manifest(
            name="formula", origin=self.origin, cluster="gw", created_utc=NOW, feature_version=FEATURE_VERSION,
            feature_hash=feature_hash(), features=NAMES, label_rule="", end_rule="accounting", window=(0, NOW),
            rows=1000, targets=tuple(models), left_out={"memory": "no MaxRSS"} if not self.memory_b else {},
            references=tuple(self.references.get(name) for name in NAMES), files={},
        )  # fmt: skip

    def raw(self, target: str, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the formulas' values."""
        self.calls.append((target, len(vectors)))
        if target != "failure":
            values = {"walltime": self.walltime_s, "memory": self.memory_b, "gpus_needed": self.gpus}[target]
            return np.tile(np.log(np.array(values, dtype=np.float32)), (len(vectors), 1))
        total = np.full(len(vectors), float(self.bias))
        for name, weight in self.logits.items():
            total += weight * np.nan_to_num(vectors[:, COLUMN[name]].astype(np.float64))
        return np.array([[1 / (1 + math.exp(-t))] for t in total], dtype=np.float32)
