"""The public set's op graphs against the models' formulas, and against the torch probe on the same configurations.

`torch-transformers.json` has sums of what the probe wrote with torch 2.4.1 and transformers 4.38.1, in the way in which
the steps were measured: eager attention, no gradient set to zero between steps, the loss's forward pass not counted.
"""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from tools.data.places import find

from gpuwaste.estimate.program import OpSum, Program, by_kind, op_sums
from gpuwaste.estimate.public.operators import work_of
from gpuwaste.models.public_times.measured_steps import OpGraphs

PROBED: Final = Path(__file__).parents[2] / "fixtures" / "estimate" / "torch-transformers.json"
CASES: Final[dict[str, Any]] = json.loads(PROBED.read_text())["cases"]
SIZES: Final = {  # layers, width, inner width, vocabulary
    "bert_large": (24, 1024, 4096, 30_522),
    "gpt2_large": (36, 1280, 5120, 50_257),
    "gpt3_xl": (24, 3072, 12_288, 50_257),
    "gpt3_27": (32, 2560, 10_240, 50_257),
    "opt_13": (24, 2048, 8192, 50_272),
}
UNUSED: Final = 5
"""Products of BERT's pooler in training, of whose result the measured loss is no function."""
HALF_COUNTED: Final = 0.2
"""Of copies: the graphs do not have the layout of gradients."""


@cache
def _graphs(archive: Path) -> OpGraphs:
    return OpGraphs(archive)


def _program(case: str) -> Program:
    archive = find("profiles/neusight/opgraphs.tar.xz")
    if archive is None:
        pytest.skip("no profiles/neusight here: `make data` does not fetch it")
    return _graphs(archive).program(case, SIZES[case.split("-", maxsplit=1)[0]][0])


def _products(program: Program) -> Counter[tuple[float, ...]]:
    """Return batch, the two sides, the inner dimension: how often."""
    found: Counter[tuple[float, ...]] = Counter()
    for batch, rows, inner, columns, _, trips in work_of(program).products["f32"]:
        found[batch, *sorted((rows, columns)), inner] += int(trips)
    return found


def _sums(case: str) -> dict[str, OpSum]:
    return {kind: OpSum(*numbers) for kind, numbers in CASES[case]["sums"].items()}


@pytest.mark.parametrize(
    "case",
    ["bert_large-inf-512-8", "gpt2_large-inf-1024-4", "gpt3_xl-inf-2048-2", "gpt3_27-inf-2048-8", "opt_13-inf-2048-8",
     "bert_large-train-512-8", "gpt2_large-train-1024-4", "gpt3_xl-train-2048-1", "gpt3_27-train-2048-2",
     "opt_13-train-2048-2"],
)  # fmt: skip
def test_flops_of_the_formula(case: str) -> None:
    """Of T tokens in S: 2 T (4 W^2 + 2 W I) + 4 T S W a layer and 2 T W V for the logits; training three times that."""
    model, mode, length, batch = case.split("-")
    layers, width, inner, vocabulary = SIZES[model]
    tokens = int(length) * int(batch)
    expected = layers * (2 * tokens * (4 * width**2 + 2 * width * inner) + 4 * tokens * int(length) * width)
    if model == "bert_large":  # in training a transformation before the logits, in inference a classifier's pooler
        expected += 2 * tokens * width * (width + vocabulary) if mode == "train" else 0
    else:
        expected += 2 * tokens * width * vocabulary
    found = sum(each.flops for each in by_kind(op_sums(_program(case))).values())
    assert found == pytest.approx(expected * (3 if mode == "train" else 1), rel=2e-5)


@pytest.mark.parametrize("case", CASES)
def test_the_same_products_as_the_probe(case: str) -> None:
    """Each product of the graph is one of the probe, as often, with the same dimensions.

    It may be transposed: GPT-2 keeps its weights so, and the graphs do not know.
    """
    probed: Counter[tuple[float, ...]] = Counter()
    for batch, rows, inner, columns, often in CASES[case]["products"]:
        probed[batch, *sorted((rows, columns)), inner] += often
    found = _products(_program(case))
    differing = (found - probed).total() + (probed - found).total()
    assert differing <= (UNUSED if case.startswith("bert_large-train") else 0)
    for kind in ("mm", "bmm"):
        assert by_kind(op_sums(_program(case)))[kind].flops == pytest.approx(_sums(case)[kind].flops, rel=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_the_same_bytes_as_the_probe(case: str) -> None:
    """In total 1 %, of each large kind 1 %; copies of gradients into another layout to a fifth."""
    found, probed = by_kind(op_sums(_program(case))), _sums(case)
    total = sum(each.bytes for each in probed.values())
    assert sum(each.bytes for each in found.values()) == pytest.approx(total, rel=0.01)
    for kind, each in probed.items():
        if each.bytes > 0.005 * total:
            assert found[kind].bytes == pytest.approx(each.bytes, rel=HALF_COUNTED if kind == "copy" else 0.01), kind


@pytest.mark.parametrize("case", CASES)
def test_as_many_operations_as_the_probe(case: str) -> None:
    """Operations that move data, to a tenth: the graphs have none for scalars and small arrays."""
    found = sum(each.count for each in by_kind(op_sums(_program(case))).values())
    assert found == pytest.approx(sum(each.count for each in _sums(case).values()), rel=0.1)
