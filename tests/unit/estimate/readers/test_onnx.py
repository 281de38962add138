"""ONNX: work computed by hand; weights and external data are never read."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.estimate import reading
from gpuwaste.estimate.program import by_kind, op_sums

read_program = partial(reading.read_program, native=None)  # a test here starts no process

onnx = pytest.importorskip("onnx", reason="the extra [estimate] is not installed")


def _model(batch: int | str = 8, weights: Any = None) -> Any:
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    filters = onnx.numpy_helper.from_array(np.zeros((64, 3, 3, 3), np.float32), "w")
    matrix = weights or onnx.numpy_helper.from_array(np.zeros((57_600, 10), np.float32), "m")
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["a"]),
            helper.make_node("Relu", ["a"], ["b"]),
            helper.make_node("Flatten", ["b"], ["c"]),
            helper.make_node("MatMul", ["c", "m"], ["y"]),
        ],
        "net",
        [helper.make_tensor_value_info("x", kind, [batch, 3, 32, 32])],
        [helper.make_tensor_value_info("y", kind, [batch, 10])],
        [filters, matrix],
    )
    return helper.make_model(graph)


def _saved(tmp_path: Path, model: Any) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def test_a_small_network(tmp_path: Path) -> None:
    """A convolution of 8 images to 64 x 30 x 30, and a matrix product of 57,600 by 10."""
    program = read_program(_saved(tmp_path, _model()))
    kinds = by_kind(op_sums(program))
    assert kinds["conv"].flops == 2 * 8 * 64 * 30 * 30 * 27
    assert kinds["mm"].flops == 2 * 8 * 57_600 * 10
    assert program.parameters_b == 4 * (64 * 27 + 57_600 * 10 + 8 * 3 * 32 * 32)
    assert program.training is False


def test_external_data_is_never_opened(tmp_path: Path) -> None:
    """Weights said to be in /etc/passwd, or outside of the folder: the file is not touched, shapes are enough."""
    tensor = onnx.TensorProto(name="m", data_type=onnx.TensorProto.FLOAT, dims=[57_600, 10], data_location=1)
    for key, value in (("location", "../../../../etc/passwd"), ("offset", "0"), ("length", "9" * 18)):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    program = read_program(_saved(tmp_path, _model(weights=tensor)))
    assert by_kind(op_sums(program))["mm"].flops == 2 * 8 * 57_600 * 10


def test_dynamic_axes_are_refused(tmp_path: Path) -> None:
    """Without a fixed batch there is no amount of memory."""
    with pytest.raises(GpuwasteError, match=r"x: dynamic shape \[batch\]: export the model without dynamic axes"):
        read_program(_saved(tmp_path, _model(batch="batch")))


@pytest.mark.parametrize("size", [3, 100, 3000, 100_000])
def test_a_file_that_is_cut(tmp_path: Path, size: int) -> None:
    """Wherever it ends, one line says so."""
    path = _saved(tmp_path, _model())
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(GpuwasteError, match="not ONNX, or cut") as found:
        read_program(path)
    assert "\n" not in str(found.value)


def _one(op_type: str, shapes: dict[str, list[int]], result: list[int], **attributes: Any) -> Any:
    """Return a model of one operation whose inputs are all given."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    node = helper.make_node(op_type, [*shapes], ["y"], **attributes)
    inputs = [helper.make_tensor_value_info(name, kind, dims) for name, dims in shapes.items()]
    return helper.make_model(
        helper.make_graph([node], "one", inputs, [helper.make_tensor_value_info("y", kind, result)])
    )


@pytest.mark.parametrize(
    ("equation", "shapes", "result", "flops"),
    [
        ("bij,bjk->bik", ([64, 128, 32], [64, 32, 256]), [64, 128, 256], 2 * 64 * 128 * 32 * 256),
        ("...ij , ...jk -> ...ik", ([7, 8, 16, 4], [7, 8, 4, 2]), [7, 8, 16, 2], 2 * 7 * 8 * 16 * 4 * 2),
        ("bhqd,bhkd->bhqk", ([2, 4, 8, 16], [2, 4, 32, 16]), [2, 4, 8, 32], 2 * 2 * 4 * 8 * 32 * 16),
        ("ij,jk", ([8, 16], [16, 4]), [8, 4], 2 * 8 * 16 * 4),
        ("ab,bc,cd->ad", ([8, 16], [16, 4], [4, 32]), [8, 32], 2 * (8 * 16 * 4 + 8 * 4 * 32)),
        ("ij->ji", ([8, 16],), [16, 8], 0),
    ],
)
def test_einsum_multiplies_once_for_each_index(
    tmp_path: Path, equation: str, shapes: tuple[list[int], ...], result: list[int], flops: int
) -> None:
    """Two FLOPs for each value of all indexes of the equation; one operand has nothing to be multiplied with."""
    named = {f"x{place}": shape for place, shape in enumerate(shapes)}
    program = read_program(_saved(tmp_path, _one("Einsum", named, result, equation=equation)))
    kinds = by_kind(op_sums(program))
    assert sum(kinds[kind].flops for kind in ("mm", "bmm") if kind in kinds) == flops


def test_products_of_integers_find_their_second_operand(tmp_path: Path) -> None:
    """Scales and zero points stand between a quantized operation's two operands."""
    scales: dict[str, list[int]] = {"xs": [], "xz": []}
    weights = {"w": [64, 3, 3, 3], "ws": [], "wz": [], "ys": [], "yz": []}
    model = _one("QLinearConv", {"x": [8, 3, 32, 32], **scales, **weights}, [8, 64, 30, 30])
    assert by_kind(op_sums(read_program(_saved(tmp_path, model))))["conv"].flops == 2 * 8 * 64 * 30 * 30 * 27
    operands = {"w": [4, 128, 32], "ws": [], "wz": [], "ys": [], "yz": []}
    model = _one("QLinearMatMul", {"x": [4, 64, 128], **scales, **operands}, [4, 64, 32])
    assert by_kind(op_sums(read_program(_saved(tmp_path, model))))["bmm"].flops == 2 * 4 * 64 * 128 * 32


def test_unknown_operations_count_with_a_note(tmp_path: Path) -> None:
    """A node of a domain of its own has no shape: the line names it."""
    model = _model()
    model.graph.node[1].op_type = "Sorcery"
    with pytest.raises(GpuwasteError, match="shape unknown"):
        read_program(_saved(tmp_path, model))


def _with_second(op_type: str, second: str, version: int, *, read: bool = False, **attributes: Any) -> Any:
    """Return Relu, an operation with a second output of unknown shape, Relu; `read`: the second is the model's, too."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    result = [1, 8, 2, 2] if op_type == "MaxPool" else [1, 8, 4, 4]
    scales = [onnx.numpy_helper.from_array(np.zeros(8, np.float32), name) for name in ("s", "t", "u", "v")]
    inputs = ["a", "s", "t", "u", "v"] if op_type == "BatchNormalization" else ["a"]
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["a"]),
            helper.make_node(op_type, inputs, ["b", *([second] if second else [])], **attributes),
            helper.make_node("Relu", ["b"], ["y"]),
        ],
        "net",
        [helper.make_tensor_value_info("x", kind, [1, 8, 4, 4])],
        [
            helper.make_tensor_value_info("y", kind, result),
            *([onnx.ValueInfoProto(name=second)] if read else []),
        ],
        scales[: len(inputs) - 1],
        value_info=[helper.make_tensor_value_info("b", kind, result)],
    )
    versions = [helper.make_opsetid("", version), helper.make_opsetid("example.org", 1)]
    return helper.make_model(graph, opset_imports=versions)


@pytest.mark.parametrize(
    ("op_type", "version", "attributes"),
    [
        ("Dropout", 9, {}),
        ("Dropout", 12, {}),
        ("MaxPool", 8, {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("BatchNormalization", 9, {}),
        ("OfAnotherDomain", 9, {"domain": "example.org"}),
    ],
)
def test_an_output_that_nobody_reads_is_left_out(
    tmp_path: Path, op_type: str, version: int, attributes: dict[str, Any]
) -> None:
    """Dropout's mask, MaxPool's indices, a saved mean: with one that nobody reads the program is the one without it."""
    without = read_program(_saved(tmp_path, _with_second(op_type, "", version, **attributes)))
    found = read_program(_saved(tmp_path, _with_second(op_type, "m", version, **attributes)))
    assert found.fingerprint == without.fingerprint


def test_a_second_output_that_is_read_needs_its_shape(tmp_path: Path) -> None:
    """A mask that the model returns, or that a branch reads, takes memory: an unknown shape is refused."""
    with pytest.raises(GpuwasteError, match="m: shape unknown: export the model with static shapes"):
        read_program(_saved(tmp_path, _with_second("Dropout", "m", 9, read=True)))
    model = _with_second("Dropout", "m", 9)
    helper = onnx.helper
    body = helper.make_graph([helper.make_node("Not", ["m"], ["n"])], "body", [], [onnx.ValueInfoProto(name="n")])
    branch = helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body)
    model.graph.input.append(helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []))
    model.graph.node.append(branch)
    with pytest.raises(GpuwasteError, match="m: shape unknown"):
        read_program(_saved(tmp_path, model))


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("bvlc_alexnet", 8),
        ("vgg19", 19),
        ("squeezenet", 26),
        ("inception_v1", 58),
        ("densenet121", 121),
        ("resnet50", 54),
    ],
)
def test_models_of_the_zoo(name: str, products: int) -> None:
    """Networks of the ONNX zoo, as the package onnx has them without weights, have all layers that multiply."""
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    kinds = by_kind(op_sums(read_program(light)))
    assert sum(kinds[kind].count for kind in ("conv", "conv1", "gconv", "dwconv", "mm") if kind in kinds) == products


def _calls(depth: int, last: str = "Relu") -> Any:
    """Return a model of functions, each of which calls the one before twice."""
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    domain = "own" if last != "Relu" else ""
    first = helper.make_function("own", "f0", ["x"], ["y"], [helper.make_node(last, ["x"], ["y"], domain=domain)], sets)
    functions = [first]
    for number in range(1, depth):
        called = f"f{number - 1}"
        nodes = [
            helper.make_node(called, ["x"], ["t"], domain="own"),
            helper.make_node(called, ["t"], ["y"], domain="own"),
        ]
        functions.append(helper.make_function("own", f"f{number}", ["x"], ["y"], nodes, sets))
    given, made = (helper.make_tensor_value_info(name, kind, [2]) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node(f"f{depth - 1}", ["x"], ["y"], domain="own")], "net", [given], [made])
    return helper.make_model(graph, functions=functions, opset_imports=sets)


def test_functions_that_expand_without_end_are_refused_at_once(tmp_path: Path) -> None:
    """Thirty functions in 1.9 kB are 1.6 thousand million operations; a ring of them has no end. Few are read."""
    assert read_program(_saved(tmp_path, _calls(5))).name == "net"
    with pytest.raises(GpuwasteError, match="1610612735 operations once its functions are expanded"):
        read_program(_saved(tmp_path, _calls(30)))
    with pytest.raises(GpuwasteError, match="more than 1000000000000 operations"):
        read_program(_saved(tmp_path, _calls(90)))
    with pytest.raises(GpuwasteError, match="function 'f3' calls itself"):
        read_program(_saved(tmp_path, _calls(4, last="f3")))


def test_calls_in_branches_are_counted(tmp_path: Path) -> None:
    """A function that is called in the branch of an If is expanded there as well."""
    model, helper = _calls(30), onnx.helper
    call = model.graph.node.pop()
    made = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    branch = helper.make_graph([call], "branch", [], [made])
    model.graph.node.append(helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch))
    with pytest.raises(GpuwasteError, match="operations once its functions are expanded"):
        read_program(_saved(tmp_path, model))
