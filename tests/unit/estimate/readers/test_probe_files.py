"""What the probes wrote, with torch 2.13 and JAX 0.10.2: FLOPs and memory computed by hand."""

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.program import by_kind, op_sums, peak_b
from gpuwaste.estimate.reading import read_program, read_programs

RECORDED: Final = Path(__file__).parents[3] / "fixtures" / "estimate"


def test_a_linear_layer_with_adam() -> None:
    """1000 to 2000 for 64 rows: forward and the gradient of the weights, 2 x 64 x 1000 x 2000 FLOPs each.

    In memory at the peak: weights, gradient, Adam's two moments and one temporary of their size, input and output.
    """
    program = read_program(RECORDED / "torch-linear-adam.json")
    assert by_kind(op_sums(program))["mm"].flops == 2 * 2 * 64 * 1000 * 2000
    assert peak_b(program.buffers) == pytest.approx(5 * 8_000_000 + 256_000 + 512_000, rel=1e-3)
    assert program.training is True


def test_a_convolution_forward_and_backward() -> None:
    """3 to 16 channels, 3x3, 8 images of 32x32: forward and the filter's gradient; the images need none."""
    kinds = by_kind(op_sums(read_program(RECORDED / "torch-convolution.json")))
    assert kinds["conv"].flops == 2 * (2 * 8 * 16 * 32 * 32 * 27)
    assert kinds["mm"].flops == 3 * (2 * 8 * 4096 * 10)
    assert {"bn", "act", "window"} <= kinds.keys()


def test_the_gradients_of_a_convolution_are_three() -> None:
    """By its input, its filters and its bias; dropout is one operation with a mask of bytes, and one backward."""
    program = read_program(RECORDED / "torch-gradients.json")
    gradients = [each for each in program.ops if each.name == "convolution_backward"]
    assert [each.kind for each in gradients].count("reduce") == 4
    stride = [each for each in gradients if (32, 16, 3, 3) in each.shapes]
    assert {each.flops for each in stride} == {2 * 8 * 32 * 16 * 16 * 16 * 9}
    assert {each.bytes_written for each in stride} == {4 * 8 * 16 * 32 * 32, 4 * 32 * 16 * 9}
    dropped = [each.bytes_read + each.bytes_written for each in program.ops if "dropout" in each.name]
    assert dropped == [2.25 * 4 * 8 * 64 * 8 * 8] * 2


def test_attention_counts_as_one_operation() -> None:
    """4 x 8 heads of 32 x 8: two products forward, five backward; the embedding is a gather and a scatter."""
    kinds = by_kind(op_sums(read_program(RECORDED / "torch-attention.json")))
    assert kinds["sdpa"].flops == 7 * (2 * 4 * 8 * 32 * 32 * 8)
    assert kinds["mm"].flops == 3 * (2 * 128 * 64 * 192)
    assert kinds["gather"].count == kinds["scatter"].count == 1


def test_a_scan_of_jax() -> None:
    """7 trips forward and 7 backward with two products each, of 64 x 256 by 256 x 256."""
    program = read_program(RECORDED / "jax-scan.json")
    assert by_kind(op_sums(program))["mm"].flops == 7 * 3 * (2 * 64 * 256 * 256)
    assert program.unknown_trips == 0
    assert program.source == "jax"


def test_stablehlo_needs_jaxlib() -> None:
    """With jaxlib a program is read; without it one line says what to do."""
    path = RECORDED / "tanh.mlir"
    if find_spec("jaxlib") is None:
        with pytest.raises(ParseError, match="StableHLO needs jaxlib"):
            read_program(path, native=None)
    else:
        assert by_kind(op_sums(read_program(path, native=None)))["mm"].flops == 2 * 64 * 512 * 256


def test_one_file_with_three_batch_sizes() -> None:
    """512 x 512 weights: FLOPs of each batch size are its own, as lowered, and a reader of one program refuses."""
    path = RECORDED / "jax-batches.json"
    found = {each.batch: by_kind(op_sums(each))["mm"].flops for each in read_programs(path)}
    assert found == {batch: 2 * batch * 512 * 512 for batch in (8, 16, 32)}
    with pytest.raises(ParseError, match="several batch sizes: expected one"):
        read_program(path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda each: each[0].update(batch=None), "need a batch size each"),
        (lambda each: each[0].update(batch=16), "all different"),
        (lambda each: each[0].update(batch=0), "batch"),
        (lambda each: each[0].update(hlo="HloModule x\n"), "batch 8: "),
        (lambda each: each.clear(), "length >= 1"),
        (lambda each: each.extend(each[:1] * 16), "length <= 16"),
    ],
)
def test_a_file_of_batch_sizes_that_lies(
    tmp_path: Path, change: Callable[[list[dict[str, object]]], None], expected: str
) -> None:
    """Missing, equal or too many batch sizes are one line."""
    written = json.loads((RECORDED / "jax-batches.json").read_text())
    change(written["programs"])
    path = tmp_path / "p.json"
    path.write_text(json.dumps(written))
    with pytest.raises(ParseError, match=expected):
        list(read_programs(path))


def test_gradients_are_what_the_torch_probe_writes(tmp_path: Path) -> None:
    """Bytes of the trained parameters; a file of an earlier probe, like any other, does not have them."""
    recorded = RECORDED / "torch-linear-adam.json"
    assert read_program(recorded).gradient_b is None
    written = json.loads(recorded.read_text()) | {"gradient_b": 8_000_000}
    (tmp_path / "program.json").write_text(json.dumps(written))
    found = read_program(tmp_path / "program.json")
    assert found.gradient_b == 8_000_000
    assert found.fingerprint == read_program(recorded).fingerprint
