"""The bundle of day one: history heuristics as ONNX graphs. No number in it was learnt from anybody's log.

Evidence is chained from the wide to the narrow: cluster, partition, account, user, user x shape, user x name. Each
step gives
    estimate = (STRENGTH * estimate + n * own) / (STRENGTH + n),  n = min(ended runs of the key, 8),
so that a key with many ended runs speaks for itself and one with none leaves the wider estimate as it is (shrinkage
as in Efron and Morris 1975, with a strength that is set, not estimated). It starts from constants that say little.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from gpuwaste.advice.predict.bundle import FeatureSet, our_features
from gpuwaste.advice.predict.manifest import Manifest, TargetModel
from gpuwaste.advice.predict.onnx_session import INPUT, OUTPUT
from gpuwaste.advice.predict.targets import BY_NAME, TARGETS
from gpuwaste.core.errors import ModelError
from gpuwaste.models.bundle_export import serialized, write_files

CHAIN: Final = ("cluster", "partition", "account", "user", "shape", "name")
STRENGTH: Final = 2.0  # runs that the wider estimate counts as
REMEMBERED: Final = 8.0
PRIOR_RATE: Final = 0.1  # of failures, cancellations and timeouts, where no run at all has ended
PRIOR_VARIANCE: Final = 1.0  # of the logarithm of a run time: a factor of e either way
UNKNOWN_LIMIT_S: Final = 86400.0
# z of the normal distribution: run times of one key are taken for log-normal around their chained mean.
_Z: Final = {0.5: 0.0, 0.9: 1.2816, 0.95: 1.6449, 0.99: 2.3263}
_LEFT_OUT: Final = "the baseline has no rule for it: train on the site's own history"


class _Graph:
    """Collects nodes; each method returns the name of a column [n, 1]."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def column(self, name: str) -> str:
        """Return a feature's column. Raises ModelError where there is none of this name."""
        if name not in self._names:
            raise ModelError(f"baseline: no feature {name}: its rules need another one in tools/baseline.py")
        index = self._constant(np.array([self._names.index(name)], np.int64))
        return self.op("Gather", INPUT, index, axis=1)

    def number(self, value: float) -> str:
        """Return a constant."""
        return self._constant(np.array([[value]], np.float32))

    def op(self, kind: str, *inputs: str, axis: int | None = None) -> str:
        """Add a node and return its output."""
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], output, axis=axis))
        return output

    def known(self, value: str, otherwise: str) -> str:
        """Return a column with its unknown values replaced."""
        return self.op("Where", self.op("IsNaN", value), otherwise, value)

    def finish(self, columns: list[str], low: str, high: str) -> None:
        """Bound the columns, which makes them the graph's output."""
        joined = self.op("Concat", *columns, axis=1)
        self.nodes.append(helper.make_node("Min", [self.op("Max", joined, low), high], [OUTPUT], name="bounded"))

    def _constant(self, value: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> str:
        name = "c_" + "_".join(str(v) for v in (value.dtype, value.ndim, *value.ravel().tolist()))
        self.constants[name] = numpy_helper.from_array(value, name)
        return name


def graphs(names: tuple[str, ...], feature_hash: str) -> dict[str, bytes]:
    """Return each target's graph, for features of these names."""
    built = {target: _rate(names, target) for target in ("failure", "failure_or_cancel", "timeout")}
    built["walltime"] = _walltime(names)
    return {
        target: serialized(
            graph.nodes,
            target,
            width=len(names),
            outputs=len(BY_NAME[target].quantiles) or 1,
            feature_hash=feature_hash,
            initializers=[graph.constants[name] for name in sorted(graph.constants)],
        )
        for target, graph in built.items()
    }


def write_baseline(directory: Path, features: FeatureSet | None = None) -> Manifest:
    """Write the bundle; equal features give equal bytes. Raises ModelError."""
    wanted = features or our_features()
    files = {f"{target}.onnx": data for target, data in graphs(wanted.names, wanted.hash).items()}
    models = tuple(TargetModel(t.name, f"{t.name}.onnx", t.quantiles) for t in TARGETS if f"{t.name}.onnx" in files)
    manifest = Manifest(
        name="baseline",
        origin="baseline",
        cluster="",
        created_utc=0,
        feature_version=wanted.version,
        feature_hash=wanted.hash,
        features=wanted.names,
        label_rule="none: not learnt",
        end_rule="accounting",
        window=(0, 0),
        rows=0,
        targets=models,
        left_out={t.name: _LEFT_OUT for t in TARGETS if f"{t.name}.onnx" not in files},
        references=(None,) * len(wanted.names),
        files={},
    )
    return write_files(directory, manifest, files, wanted)


def _rate(names: tuple[str, ...], target: str) -> _Graph:
    """Return the chained rate of an outcome among the runs that ended."""
    graph = _Graph(names)
    estimate = graph.number(PRIOR_RATE)
    for key in CHAIN:
        n = _ended(graph, key)
        if target == "timeout":
            own = graph.op("Div", graph.column(f"{key}_late_8"), graph.op("Max", n, graph.number(1.0)))
        else:
            own = graph.column(f"{key}_fail_slow")
        if target == "failure_or_cancel":
            cancelled = graph.known(graph.column(f"{key}_cancelled"), graph.number(0.0))
            all_ended = graph.known(graph.column(f"{key}_ended"), graph.number(0.0))
            share = graph.op("Div", cancelled, graph.op("Max", all_ended, graph.number(1.0)))
            own = graph.op("Min", graph.op("Add", own, share), graph.number(1.0))
        estimate = _shrunk(graph, estimate, own, n)
    graph.finish([estimate], graph.number(0.001), graph.number(0.999))
    return graph


def _walltime(names: tuple[str, ...]) -> _Graph:
    """Return log quantiles: the chained log-normal of the last runs, at most the limit, the limit where none ended."""
    graph = _Graph(names)
    limit = graph.op(
        "Log", graph.op("Max", graph.known(graph.column("limit"), graph.number(UNKNOWN_LIMIT_S)), graph.number(1.0))
    )
    mean, variance = limit, graph.number(PRIOR_VARIANCE)
    for key in CHAIN:
        n = _ended(graph, key)
        mean = _shrunk(graph, mean, graph.column(f"{key}_run_mean"), n)
        variance = _shrunk(graph, variance, graph.column(f"{key}_run_var"), n)
    deviation = graph.op("Sqrt", graph.op("Max", variance, graph.number(0.0)))
    columns = [
        graph.op("Add", mean, graph.op("Mul", deviation, graph.number(_Z[q]))) for q in BY_NAME["walltime"].quantiles
    ]
    graph.finish(columns, graph.number(0.0), limit)
    return graph


def _ended(graph: _Graph, key: str) -> str:
    """Return how many ended runs of a key speak: none to REMEMBERED."""
    ended = graph.known(graph.column(f"{key}_ended"), graph.number(0.0))
    return graph.op("Min", graph.op("Max", ended, graph.number(0.0)), graph.number(REMEMBERED))


def _shrunk(graph: _Graph, wider: str, own: str, n: str) -> str:
    """Return (STRENGTH * wider + n * own) / (STRENGTH + n), `wider` where `own` is not known."""
    strength = graph.number(STRENGTH)
    both = graph.op("Add", graph.op("Mul", strength, wider), graph.op("Mul", n, own))
    return graph.known(graph.op("Div", both, graph.op("Add", strength, n)), wider)


def main(argv: list[str]) -> int:
    """Write the shipped bundle anew: `python -m tools.baseline DIRECTORY` (make baseline)."""
    directory = Path(argv[1])
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "baseline"
        write_baseline(fresh)
        if directory.is_dir():
            shutil.rmtree(directory)
        shutil.copytree(fresh, directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
