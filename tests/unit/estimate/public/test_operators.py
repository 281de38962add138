"""Dimensions of products and convolutions from each reader's operations, computed by hand."""

from collections import Counter
from functools import partial
from importlib.util import find_spec
from math import isfinite, prod
from pathlib import Path
from typing import Final

import pytest
from tests.unit.estimate.programs import read_text

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate import reading
from gpuwaste.estimate.program import KINDS, MAX_AMOUNT, Dtype, Kind, Op, Program, fingerprint
from gpuwaste.estimate.public.operators import StepWork, work_of

RECORDED: Final = Path(__file__).parents[3] / "fixtures" / "estimate"
Shapes = tuple[tuple[int, ...], ...]
read_program = partial(reading.read_program, native=None)  # a test here starts no process


def _work(*ops: Op) -> StepWork:
    made = Program(
        name="p", source="torch", ops=list(ops), buffers=[], parameters_b=0, outputs_b=0,
        fingerprint=fingerprint(ops, []),
    )  # fmt: skip
    return work_of(made)


def _products(work: StepWork) -> Counter[tuple[float, ...]]:
    """Return batch, rows, inner, columns: how often; a product and its transposition are one."""
    found: Counter[tuple[float, ...]] = Counter()
    for batch, rows, inner, columns, _, trips in work.products.get("f32", []):
        found[batch, *sorted((rows, columns)), inner] += int(trips)
    return found


def _convolutions(work: StepWork) -> list[tuple[float, ...]]:
    """Return images, height, width, channels, columns, points, strided of each, sorted."""
    return sorted(tuple(row[:7]) for row in work.convolutions.get("f32", []))


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((64, 32), (64, 128), (128, 32)), (1, 32, 64, 128)),
        (((64, 32), (64, 128), (32, 128)), (1, 32, 64, 128)),
        (((4, 8, 16, 64), (4, 16, 8, 32), (4, 8, 64, 32)), (32, 16, 64, 32)),
        (((4, 8, 16, 16), (4, 16, 8, 32)), (32, 16, 16, 32)),
        (((256, 50), (256, 10)), (1, 50, 256, 10)),
        (((8, 32, 16), (8, 32, 16), (8, 32), (8, 32, 64), (8, 64, 16)), (8, 16, 32, 64)),
        (((1, 1), (1, 1), (1, 1)), (1, 1, 1, 1)),
    ],
)
def test_a_product_in_any_layout(shapes: Shapes, expected: tuple[int, ...]) -> None:
    """Transposed operands, one that is both, one that is a constant of the file, one among those of a fusion."""
    batch, rows, columns, inner = expected
    op = Op(kind="bmm", dtype="f32", flops=2.0 * prod((batch, rows, columns, inner)), bytes_read=1, shapes=shapes)
    assert _products(_work(op)) == {expected: 1}


_X, _Y, _K = (8, 16, 28, 28), (8, 32, 28, 28), (32, 16, 3, 3)
_S, _HALF = (8, 32, 14, 14), 2 * 8 * 32 * 14 * 14 * 16 * 9
_LAST: Final = (8, 28, 28, 16), (8, 14, 14, 32), (3, 3, 16, 32)
_FILTERS: Final = (1, 144, 1, 8 * 14 * 14, 32, 1, 1)


@pytest.mark.parametrize(
    ("shapes", "flops", "expected"),
    [
        ((_Y, _X, _K, (32,)), 4 * _HALF, [(8, 28, 28, 16, 32, 9, 0)]),
        (((8, 32, 26, 26), _X, _K), 2 * 8 * 32 * 26 * 26 * 144, [(8, 26, 26, 16, 32, 9, 0)]),
        ((_S, _X, _K), _HALF, [(8, 14, 14, 16, 32, 9, 1)]),
        ((_X, _S, _K), _HALF, [(8, 28, 28, 8, 16, 9, 1)]),
        ((_K, _X, _S), _HALF, [_FILTERS]),
        ((_K, _S, _X), _HALF, [_FILTERS]),
        ((_LAST[1], _LAST[0], _LAST[2]), _HALF, [(8, 14, 14, 16, 32, 9, 1)]),
        ((_LAST[2], _LAST[0], _LAST[1]), _HALF, [_FILTERS]),
        ((_X, _Y, _X, _K), 8 * _HALF, [(8, 28, 28, 32, 16, 9, 0)] * 2),
        (((8, 32, 100), (8, 16, 100), (32, 16, 9)), 2 * 8 * 32 * 100 * 16 * 9, [(8, 100, 1, 16, 32, 9, 1)]),
    ],
    ids=["same", "valid", "strided", "input", "filters", "swapped", "last", "last-filters", "both", "line"],
)
def test_a_convolution_and_its_gradients(shapes: Shapes, flops: float, expected: list[tuple[int, ...]]) -> None:
    """Channels second or last; strided; by input and filters; the gradients together as earlier probes wrote them."""
    op = Op(kind="conv", dtype="f32", flops=flops, bytes_read=1, shapes=shapes)
    assert _convolutions(_work(op)) == expected


@pytest.mark.parametrize(
    "shapes",
    [
        ((8, 128, 14, 14), (8, 64, 28, 28), (128, 64, 1, 1)),
        ((8, 64, 28, 28), (8, 128, 14, 14), (128, 64, 1, 1)),
        ((128, 64, 1, 1), (8, 64, 28, 28), (8, 128, 14, 14)),
        ((8, 28, 28, 64), (8, 14, 14, 128), (1, 1, 64, 128)),
        ((8, 128, 196), (8, 64, 28, 28), (128, 64, 1, 1)),
    ],
)
def test_a_convolution_of_points_is_a_product(shapes: Shapes) -> None:
    """With a stride only the places of the result multiply: 8 x 14 x 14 by 64 by 128, whichever of them is summed."""
    op = Op(kind="conv1", dtype="f32", flops=2.0 * 1568 * 64 * 128, bytes_read=1, shapes=shapes)
    ((batch, *sides),) = _products(_work(op))
    assert (batch, sorted(sides)) == (1, [64, 128, 1568])


def test_attention_is_two_products() -> None:
    """16 heads, 512 by 512 tokens of 64: queries by keys, and their product by values."""
    op = Op(kind="sdpa", dtype="f32", flops=4.0 * 16 * 512 * 512 * 64, bytes_read=1, shapes=((1, 16, 512, 64),) * 4)
    assert _products(_work(op)) == {(16, 512, 512, 64): 1, (16, 64, 512, 512): 1}


_TINY: Final = (), (0,), (1,), (1, 1, 1, 1), (3, 3), (2, 3, 1, 1), (7, 7, 7, 7), (0, 4, 4, 4)
_HUGE: Final = (1 << 48,), (1 << 48,) * 4, (1 << 48,) * 32, (1 << 40, 3, 3, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flops", [0.0, 1e-300, 1.0, 7.5, 1e12, MAX_AMOUNT])
def test_hostile_numbers_stay_finite(kind: Kind, flops: float) -> None:
    """Zero sizes, missing shapes, more elements than a float holds: positive numbers, and no exception."""
    sizes = (*_TINY, *_HUGE)
    several: list[Shapes] = [(), *((a,) for a in sizes), *((a, b) for a in sizes for b in sizes)]
    several += [(a, b, c) for a in sizes for b in sizes for c in (*_TINY[2:5], _HUGE[2])]
    dtypes: tuple[Dtype, ...] = ("f32", "i4", "other")
    for place, shapes in enumerate(several):
        dtype = dtypes[place % len(dtypes)]
        op = Op(kind=kind, dtype=dtype, flops=flops, bytes_read=MAX_AMOUNT, shapes=shapes, trips=1e12)
        work = _work(op)
        rows = [row for found in (work.products, work.convolutions) for each in found.values() for row in each]
        assert all(isfinite(number) and number >= 0 for row in rows for number in row), (shapes, rows)
        assert isfinite(sum(work.moved.values()) + work.known + work.unknown + work.launches)


_VISION: Final = {
    (1, 24, 256, 32): 1, (1, 32, 256, 24): 1, (1, 16, 256, 32): 3, (8, 64, 64, 8): 2, (8, 8, 64, 64): 4,
    (1, 16, 32, 256): 3, (1, 32, 256, 16): 3,
}  # fmt: skip
"""Products: of 24 to 32 channels at 256 places and its input's gradient; queries, keys, values and attention, forward
and backward: 4 images with two heads of 64 tokens, 8 wide."""
_VISION_CONVOLUTIONS: Final = [
    (1, 24, 1, 256, 32, 1, 1), (1, 144, 1, 1024, 24, 1, 1), (1, 147, 1, 1024, 16, 1, 1),
    (4, 16, 16, 3, 16, 49, 1), (4, 16, 16, 16, 24, 9, 0), (4, 16, 16, 24, 16, 9, 0),
]  # fmt: skip


@pytest.mark.parametrize("name", ["jax-vision.hlo", "jax-vision.mlir"])
def test_a_network_of_jax(name: str) -> None:
    """JAX 0.10: convolutions 7x7 and 3x3 (NHWC) and 1x1 (NCHW, stride 2), then attention, with all gradients."""
    if name.endswith("mlir") and find_spec("jaxlib") is None:
        with pytest.raises(ParseError, match="StableHLO needs jaxlib"):
            read_program(RECORDED / name)
        return
    work = work_of(read_program(RECORDED / name))
    assert _products(work) == _VISION
    assert _convolutions(work) == _VISION_CONVOLUTIONS


def test_a_network_of_torch() -> None:
    """Convolutions 3x3, one with stride 2, and 1x1, one with stride 2, from the probe, with all gradients."""
    work = work_of(read_program(RECORDED / "torch-gradients.json"))
    assert _convolutions(work) == [
        (1, 27, 1, 8192, 16, 1, 1), (1, 144, 1, 2048, 32, 1, 1),
        (8, 16, 16, 16, 32, 9, 1), (8, 32, 32, 3, 16, 9, 0), (8, 32, 32, 8, 16, 9, 1),
    ]  # fmt: skip
    assert _products(work) == {
        (1, 32, 64, 2048): 1, (1, 64, 2048, 32): 1, (1, 32, 2048, 64): 1, (1, 64, 512, 64): 2, (1, 64, 64, 512): 1,
        (1, 8, 10, 64): 1, (1, 8, 64, 10): 1, (1, 10, 64, 8): 1,
    }  # fmt: skip


def test_a_product_of_hlo_with_itself(tmp_path: Path) -> None:
    """An array by its own transposition is both operands, and once among the shapes."""
    text = """HloModule gram

ENTRY main {
  x = f32[64,100]{1,0} parameter(0)
  ROOT y = f32[64,64]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
}
"""
    assert _products(work_of(read_text(tmp_path, text))) == {(1, 64, 64, 100): 1}


_ONNX: Final[dict[str, tuple[str, dict[str, list[int]], list[int], dict[str, object]]]] = {
    "plain": ("MatMul", {"a": [64, 128], "b": [128, 32]}, [64, 32], {}),
    "weights": ("MatMul", {"a": [4, 16, 128], "b": [128, 32]}, [4, 16, 32], {}),
    "batched": ("MatMul", {"a": [2, 3, 64, 128], "b": [2, 3, 128, 32]}, [2, 3, 64, 32], {}),
    "gemm": ("Gemm", {"a": [128, 64], "b": [32, 128], "c": [32]}, [64, 32], {"transA": 1, "transB": 1}),
    "einsum": ("Einsum", {"a": [2, 64, 3, 128], "b": [2, 32, 3, 128]}, [2, 3, 64, 32], {"equation": "bqhd,bkhd->bhqk"}),
    "point": (
        "Conv", {"a": [1, 128, 16, 16], "b": [32, 128, 1, 1], "c": [32]}, [1, 32, 8, 8], {"strides": [2, 2]},
    ),
    "integers": (
        "QLinearMatMul",
        {"a": [64, 128], "as": [], "az": [], "b": [128, 32], "bs": [], "bz": [], "ys": [], "yz": []}, [64, 32], {},
    ),
}  # fmt: skip


def _onnx(tmp_path: Path, name: str) -> StepWork:
    onnx = pytest.importorskip("onnx", reason="the extra [estimate] is not installed")
    op_type, shapes, result, attributes = _ONNX.get(name) or _ONNX_CONVOLUTION
    kind = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op_type, [*shapes], ["y"], **attributes)],
        "one",
        [onnx.helper.make_tensor_value_info(each, kind, dims) for each, dims in shapes.items()],
        [onnx.helper.make_tensor_value_info("y", kind, result)],
    )
    (tmp_path / "one.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return work_of(read_program(tmp_path / "one.onnx"))


@pytest.mark.parametrize("name", _ONNX)
def test_products_of_onnx(tmp_path: Path, name: str) -> None:
    """64 x 128 by 128 x 32 in each form: with batches, transposed, with a bias, with scales between the operands."""
    batch = 6 if name in {"batched", "einsum"} else 1
    assert _products(_onnx(tmp_path, name)) == {(batch, 32, 64, 128): 1}


_ONNX_CONVOLUTION: Final = (
    "Conv", {"a": [8, 3, 224, 224], "b": [64, 3, 7, 7], "c": [64]}, [8, 64, 112, 112],
    {"strides": [2, 2], "pads": [3, 3, 3, 3]},
)  # fmt: skip


def test_a_convolution_of_onnx(tmp_path: Path) -> None:
    """The first layer of a residual network, with its bias."""
    assert _convolutions(_onnx(tmp_path, "conv")) == [(8, 112, 112, 3, 64, 49, 1)]
