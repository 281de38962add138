"""Readers of public measurements, on small files written here: operators, steps of whole models, sums of timm."""

import csv
import json
import lzma
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from gpuwaste.models.public_times import measured_operators
from gpuwaste.models.public_times.measured_operators import KIND_OF
from gpuwaste.models.public_times.measured_steps import TimedStep, steps
from gpuwaste.models.public_times.measured_sums import INFERENCE, TRAINING, TWICE, timed_sums

V100: Final = "Tesla V100-PCIE-32GB"
P4: Final = "Tesla P4"
UNKNOWN: Final = "NVIDIA Abacus 9"
PRODUCT: Final = ("OPName", "Latency", "Device", "B", "M", "N", "K")
VECTOR: Final = ("OPName", "Latency", "Device", "B", "H")
CONVOLUTION: Final = (
    "OPName", "Latency", "Device", "B", "Input_Channel", "Output_Channel", "Kernel_Szie", "Input_Size", "Stride",
    "Padding",
)  # fmt: skip


def write(folder: Path, stem: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write one compressed file of operators."""
    with lzma.open(folder / f"{stem}.csv.xz", "wt", newline="") as file:
        csv.writer(file).writerows([heads, *rows])


def test_products(tmp_path: Path) -> None:
    """Batch, rows, inner, columns; milliseconds; P4's linear layers disagree and are left out, unknown GPUs too."""
    rows = [("bmm", 2.5, V100, 6, 27, 21, 390), ("bmm", 1, UNKNOWN, 1, 1, 1, 1), ("bmm", 3, P4, 2, 3, 4, 5)]
    write(tmp_path, "ops_bmm", PRODUCT, rows)
    write(tmp_path, "ops_linear", PRODUCT, [("linear", 4, V100, 1, 64, 128, 32), ("linear", 4, P4, 1, 64, 128, 32)])
    write(tmp_path, "ops_test_bmm", PRODUCT, [])
    write(tmp_path, "ops_test_linear", PRODUCT, [("linear", 5, P4, 1, 2, 3, 4)])
    found = measured_operators.products(tmp_path)
    assert [(each.gpu, each.kind, each.test) for each in found] == [
        ("v100-pcie-32gb", "bmm", False), ("p4", "bmm", False), ("v100-pcie-32gb", "mm", False), ("p4", "mm", True),
    ]  # fmt: skip
    one = found[0]
    assert one.seconds.tolist() == [0.0025]
    assert one.of.flops.tolist() == [2.0 * 6 * 27 * 21 * 390]
    assert one.of.bytes.tolist() == [4.0 * 6 * (27 * 21 + 21 * 390 + 27 * 390)]
    assert [each.tolist() for each in (one.of.rows, one.of.inner, one.of.columns)] == [[27.0], [21.0], [390.0]]


def test_convolutions(tmp_path: Path) -> None:
    """Kernels by their side, without stride; a GPU that the table does not have is left out."""
    rows = [("conv", 0.9, V100, 38, 893, 326, 3, 5, 1, 1), ("conv", 0.8, UNKNOWN, 1, 1, 1, 3, 5, 1, 1)]
    write(tmp_path, "ops_conv", CONVOLUTION, rows)
    (found,) = measured_operators.convolutions(tmp_path)
    assert (found.gpu, found.kind, found.seconds.tolist()) == ("v100-pcie-32gb", "conv", [0.0009])
    assert found.of.flops.tolist() == [2.0 * 38 * 5 * 5 * 893 * 326 * 9]
    assert (found.of.points.tolist(), found.of.strided.tolist()) == ([9.0], [0.0])


def test_vectors(tmp_path: Path) -> None:
    """Two operands move three arrays, others two; long rows are a kind of their own; the same row twice is one."""
    for name in KIND_OF:
        write(tmp_path, f"ops_{name}", VECTOR, [(name, 0.5, V100, 8, 100)])
    write(tmp_path, "ops_ln", VECTOR, [("ln", 0.5, V100, 8, 4096), ("ln", 0.25, UNKNOWN, 8, 100)])
    write(tmp_path, "ops_test_vec", VECTOR, [("addu", 1, V100, 2, 3), ("addu", 1, V100, 2, 3), ("addu", 2, P4, 2, 3)])
    for stem in ("ops_test_elem", "ops_test_ln", "ops_test_softmax"):
        write(tmp_path, stem, VECTOR, [])
    found = {(each.gpu, each.kind, each.test): each for each in measured_operators.vectors(tmp_path)}
    v100 = "v100-pcie-32gb"
    assert set(found) == {
        (v100, "elem", False), (v100, "act", False), (v100, "softmax", False), (v100, "ln long", False),
        (v100, "elem", True), ("p4", "elem", True),
    }  # fmt: skip
    assert sorted(found[v100, "elem", False].of) == [2 * 4 * 800.0] * 4 + [3 * 4 * 800.0] * 4
    assert found[v100, "ln long", False].of.tolist() == [2 * 4 * 8 * 4096.0]
    assert found[v100, "elem", True].seconds.tolist() == [0.001]
    assert np.isfinite(found[v100, "act", False].seconds).all()


def test_steps(tmp_path: Path) -> None:
    """Model, mode, layers, compiled or not; steps of several GPUs and of unknown types are left out."""
    lines = [
        "device,case,e2e_ms,forward_ms,backward_ms,num_layer",
        "Tesla_T4,bert_large-inf-512-16,200,200,0,24",
        "Tesla_T4,gpt2_large-train-512-4,900,300,600,36",
        "Tesla_T4,gpt2_large-train-512-8,900,401,600,36",
        "Tesla_T4,bert_large-inf-512-16-fusion,100,100,0,",
        "Tesla_T4,gpt2_large-train-512-4-dp4,900,300,600,36",
        "Abacus_9,bert_large-inf-512-16,200,200,0,24",
    ]
    (tmp_path / "end_to_end.csv").write_text("\n".join(lines) + "\n")
    first, second, third, compiled = steps(tmp_path)
    assert first == TimedStep("t4", "bert_large-inf-512-16", 24, 0.2, 0.2, 0.0)
    assert (first.model, first.training, first.compiled, first.disturbed) == ("bert_large", False, False, False)
    assert (second.model, second.training, second.disturbed) == ("gpt2_large", True, False)
    assert third.disturbed
    assert (compiled.compiled, compiled.layers) == (True, 0)


def _sums(folder: Path, gpu: str, ops: Mapping[str, Sequence[float]]) -> None:
    row = {"model": "resnet50", "img": 224, "family": "resnet", "ops": ops}
    with lzma.open(folder / "op_sums.jsonl.xz", "wt") as file:
        file.write(json.dumps(row) + "\n" + json.dumps({**row, "model": "other"}) + "\n")
    table = "model,{0}_img_size,{0}_step_time,{0}_batch_size\nresnet50.a1_in1k,224,{1},64\nresnet50.a1_in1k,288,99,64\n"
    (folder / INFERENCE.format(gpu=gpu)).write_text(table.format("infer", 20))
    (folder / TRAINING.format(gpu=gpu)).write_text(table.format("train", 80))


@pytest.mark.parametrize(("training", "step_s"), [(False, 0.02), (True, 0.08)])
def test_sums_of_timm(tmp_path: Path, training: bool, step_s: float) -> None:
    """Sums of one image times the batch; FLOPs are half of the file's; kinds without operations are left out."""
    _sums(tmp_path, "rtx3090", {"conv": [53, 16.4e9, 1e6, 2e6], "gconv": [0, 0.0, 0.0, 0.0]})
    (found,) = timed_sums(tmp_path, "rtx3090", training=training)
    assert (found.gpu, found.model, found.family, found.step_s) == ("rtx3090", "resnet50", "resnet", step_s)
    assert set(found.sums) == {"conv"}
    conv = found.sums["conv"]
    assert (conv.count, conv.bytes) == (53, 64 * 3e6)
    assert conv.flops == pytest.approx(64 * 2 * 4.1e9)
    assert TWICE == 2.0
    assert timed_sums(tmp_path, "rtx4090", training=training) == []
