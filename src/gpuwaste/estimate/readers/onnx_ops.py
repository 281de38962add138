"""The work of an ONNX operation: kind, role, FLOPs."""

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any, Final, cast

from gpuwaste.estimate.program import Kind
from gpuwaste.estimate.readers.graph import Role

Shape = tuple[int, ...]
_TABLE_TEXT: Final = """
conv heavy Conv ConvTranspose ConvInteger QLinearConv DeformConv
mm heavy MatMul Gemm MatMulInteger QLinearMatMul Einsum
sdpa heavy Attention MultiHeadAttention
bn heavy BatchNormalization InstanceNormalization
ln heavy LayerNormalization GroupNormalization RMSNormalization SimplifiedLayerNormalization
ln heavy LpNormalization SkipLayerNormalization
softmax heavy Softmax LogSoftmax
act light Relu Gelu Sigmoid Tanh LeakyRelu Elu Selu Celu HardSigmoid HardSwish Mish Softplus Softsign PRelu Swish
act light ThresholdedRelu Clip
elem light Add Sub Mul Div Pow Sqrt Exp Log Neg Abs Erf Reciprocal Min Max Where Equal Greater Less And Or Not Xor
elem light Floor Ceil Round Mod Sum Mean Sin Cos Tan Asin Acos Atan Sinh Cosh Sign IsNaN IsInf GreaterOrEqual
elem light LessOrEqual QuantizeLinear DequantizeLinear DynamicQuantizeLinear BitShift
reduce reduce ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare
reduce reduce ArgMax ArgMin CumSum GlobalAveragePool GlobalMaxPool
window reduce MaxPool AveragePool LpPool Resize Upsample RoiAlign MaxRoiPool GridSample
copy light Cast Concat Slice Split Pad Expand Tile Constant ConstantOfShape Range Shape Size EyeLike DepthToSpace
copy light SpaceToDepth OneHot Trilu CastLike ReverseSequence
gather light Gather GatherElements GatherND
scatter update ScatterElements ScatterND Scatter
sort heavy TopK NonMaxSuppression Unique
random heavy Dropout RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial
solve heavy Det DFT STFT
custom heavy LSTM GRU RNN
"""
"""Kind, role, operations."""
_ALIAS: Final = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
_TABLE: Final[dict[str, tuple[Kind, Role]]] = {
    word: (cast("Kind", kind), cast("Role", role))
    for kind, role, *words in (line.split() for line in _TABLE_TEXT.split("\n") if line)
    for word in words
}


def kind_and_role(op_type: str) -> tuple[Kind, Role]:
    """Return the kind of an operation, "other" where it is unknown, and how it uses memory."""
    if op_type in _ALIAS:
        return "copy", "alias"
    if op_type == "Transpose":
        return "copy", "view"
    return _TABLE.get(op_type, ("other", "heavy"))


def work(node: Any, kind: Kind, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> tuple[float, Kind]:
    """Return FLOPs of an operation, and its kind, refined if the shapes allow it."""
    if kind == "mm" and inputs and inputs[0]:
        return _product(node, inputs, outputs[0])
    if kind == "conv" and len(inputs) > _second(node):
        return _convolution(node, inputs, outputs[0])
    if kind == "sdpa" and len(inputs) > 1 and len(inputs[0]) == len(inputs[1]) > 2:  # noqa: PLR2004 - batch first
        query, key = inputs[0], inputs[1]
        return 4.0 * prod(query) * key[-2], kind
    return 0.0, kind


def _einsum(equation: str, inputs: Sequence[Shape]) -> tuple[float, Kind]:
    """Return the work of operands multiplied one after another, as runtimes do it."""
    given, arrow, written = equation.replace(" ", "").partition("->")
    operands = given.split(",")
    if len(operands) != len(inputs):
        return 0.0, "mm"
    named = [_named(labels, shape) for labels, shape in zip(operands, inputs, strict=True)]
    size: dict[str, int] = {}
    for names in named:
        for name, length in names.items():
            size[name] = max(size.get(name, 1), length)
    often = Counter(name for labels in operands for name in labels)
    result = {name for name in size if not name.isalpha() or (name in written if arrow else often[name] == 1)}
    flops, product = 0.0, set(named[0])
    for place, names in enumerate(named[1:], 1):
        product |= set(names)
        flops += 2.0 * prod(size[name] for name in product)
        product &= result.union(*named[place + 1 :])
    batch = set.intersection(*map(set, named)) & result
    return flops, "bmm" if len(named) > 1 and batch else "mm"


def _named(labels: str, shape: Shape) -> dict[str, int]:
    """Return the length of each index of an operand; those of an ellipsis are numbered from its end."""
    before, ellipsis, after = labels.partition("...")
    rest = len(shape) - len(before) - len(after)
    if rest < 0 or (rest and not ellipsis):
        return {}
    names = [*before, *(f".{place}" for place in range(rest, 0, -1)), *after]
    return dict(zip(names, shape, strict=True))


def _product(node: Any, inputs: Sequence[Shape], result: Shape) -> tuple[float, Kind]:
    if node.op_type == "Einsum":
        equations = [each.s.decode("ascii", "replace") for each in node.attribute if each.name == "equation"]
        return _einsum(equations[0], inputs) if equations else (0.0, "mm")
    left = inputs[0]
    inner = left[-1]
    if node.op_type == "Gemm" and any(each.name == "transA" and each.i for each in node.attribute):
        inner = left[0]
    right = _second(node)
    batched = len(inputs) > right and len(inputs[right]) > 2  # noqa: PLR2004 - a matrix
    return 2.0 * prod(result) * inner, "bmm" if batched else "mm"


def _second(node: Any) -> int:
    """Return the place of the second operand: in a quantized operation it is after the first one's scale."""
    return 3 if node.op_type.startswith("QLinear") else 1


def _convolution(node: Any, inputs: Sequence[Shape], result: Shape) -> tuple[float, Kind]:
    weight = inputs[_second(node)]
    groups = next((each.i for each in node.attribute if each.name == "group"), 1) or 1
    positions = prod(inputs[0]) if node.op_type == "ConvTranspose" else prod(result)
    flops = 2.0 * positions * prod(weight[1:])
    if groups > 1:
        return flops, "dwconv" if weight[1:2] == (1,) else "gconv"
    return flops, "conv1" if prod(weight[2:]) == 1 else "conv"
