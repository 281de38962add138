"""A program in the neutral form: operations with their work, buffers with their lifetimes. Every reader returns this.

FLOPs count a multiply-add as two. `flops`, `bytes_read` and `bytes_written` of an operation are those of one execution;
`trips` is how many times one run of the program (one step) executes it.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

VERSION: Final = 1
MAX_OPS: Final = 400_000
MAX_BUFFERS: Final = 400_000
MAX_TRIPS: Final = 1e12
MAX_AMOUNT: Final = 1e24
"""FLOPs or bytes of one operation; a larger number is an error of the file, not a program for a GPU."""

KINDS: Final = (
    "conv",  # convolution with a kernel of more than one point
    "conv1",  # convolution with a kernel of 1x1: a matrix product in another layout
    "dwconv",  # depthwise: one group per input channel
    "gconv",  # grouped, between the two
    "mm",  # matrix product
    "bmm",  # matrix product with batch dimensions
    "sdpa",  # scaled dot-product attention in one operation
    "bn",  # batch normalization in one operation
    "ln",  # layer, group and RMS normalization in one operation
    "softmax",  # softmax in one operation
    "act",  # activation function: one input, one output, no other operand
    "elem",  # other elementwise arithmetic
    "reduce",  # sums and maxima over dimensions, prefix sums
    "window",  # pooling and its gradient
    "copy",  # moves data: transpose, concatenate, slice, pad, cast, fill
    "gather",  # reads rows by index: embeddings
    "scatter",  # writes or adds rows by index: gradients of embeddings
    "sort",  # sorts and top-k
    "random",  # random numbers
    "solve",  # Cholesky, triangular solve, QR, eigenvalues, FFT
    "collective",  # exchange between GPUs
    "custom",  # a kernel that only its author knows: custom calls with unknown targets
    "other",  # operations that the reader does not know
)
"""Kinds of operations; the names of the timm tables where they have one."""

Kind = Literal[
    "conv", "conv1", "dwconv", "gconv", "mm", "bmm", "sdpa", "bn", "ln", "softmax", "act", "elem", "reduce", "window",
    "copy", "gather", "scatter", "sort", "random", "solve", "collective", "custom", "other",
]  # fmt: skip
UNKNOWN_KINDS: Final = frozenset({"custom", "other"})
"""Kinds whose time cannot be derived from other measurements."""

DTYPE_BITS: Final = {
    "f64": 64, "f32": 32, "tf32": 32, "f16": 16, "bf16": 16, "f8": 8, "f4": 4, "c64": 64, "c128": 128,
    "i64": 64, "i32": 32, "i16": 16, "i8": 8, "i4": 4, "bool": 8, "other": 32,
}  # fmt: skip
"""Element types and their bits. Unsigned integers count as signed ones; `other`: the reader does not know the type.

The type of an operation is that in which it multiplies (`mm` of bf16 into f32 is bf16), so it is `tf32` only if the
file states that; for operations that move data it is the type moved.
"""
Dtype = Literal[
    "f64", "f32", "tf32", "f16", "bf16", "f8", "f4", "c64", "c128", "i64", "i32", "i16", "i8", "i4", "bool", "other"
]

Source = Literal["hlo", "stablehlo", "onnx", "torch", "jax"]
BufferKind = Literal["parameter", "output", "temporary"]
Amount = Annotated[float, Meta(ge=0, le=MAX_AMOUNT)]
Bytes = Annotated[int, Meta(ge=0, le=1 << 60)]
Name = Annotated[str, Meta(max_length=256)]
Note = Annotated[str, Meta(max_length=400)]
_Index = Annotated[int, Meta(ge=0, le=MAX_OPS)]
_Shape = Annotated[tuple[Annotated[int, Meta(ge=0, le=1 << 48)], ...], Meta(max_length=32)]
ALIGNMENT_B: Final = 256
"""Allocators of GPU memory round each buffer up to this."""


class Op(Struct, kw_only=True, frozen=True):
    """One operation, and how often it runs in one step."""

    kind: Kind
    name: Name = ""
    dtype: Dtype = "other"
    flops: Amount = 0.0
    bytes_read: Amount = 0.0
    bytes_written: Amount = 0.0
    trips: Annotated[float, Meta(ge=0, le=MAX_TRIPS)] = 1.0
    """Product of the trip counts of the loops around it; a loop of unknown length counts once, see `notes`."""
    shapes: Annotated[tuple[_Shape, ...], Meta(max_length=64)] = ()
    """The result first, then the operands."""


class Buffer(Struct, kw_only=True, frozen=True):
    """One piece of GPU memory: from its first to its last use, both included, as indexes of `Program.ops`."""

    size_b: Bytes
    first: _Index
    last: _Index
    kind: BufferKind = "temporary"


Batch = Annotated[int, Meta(ge=1, le=1 << 31)]


class CompiledMemory(Struct, kw_only=True, frozen=True):
    """A compiler's figure of the memory that the program needs on one type of GPU (XLA's memory_analysis)."""

    target: Name
    """The GPU that the program was compiled for, as the compiler names it."""
    argument_b: Bytes
    output_b: Bytes
    alias_b: Bytes
    temp_b: Bytes
    code_b: Bytes = 0

    @property
    def need_b(self) -> int:
        """The bytes allocated while it runs: arguments, outputs that do not reuse them, temporaries, code."""
        return self.argument_b + max(0, self.output_b - self.alias_b) + self.temp_b + self.code_b


class Program(Struct, kw_only=True, frozen=True):
    """What one step of a program computes and keeps."""

    name: Name
    source: Source
    ops: Annotated[list[Op], Meta(max_length=MAX_OPS)]
    buffers: Annotated[list[Buffer], Meta(max_length=MAX_BUFFERS)]
    parameters_b: Bytes
    """Bytes passed to the program: weights, optimizer state, the batch."""
    outputs_b: Bytes
    """Bytes that it returns in separate memory: an output that reuses a parameter's memory is not counted."""
    fingerprint: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """sha256 of ops and buffers without names: the same program from another run or folder has the same."""
    training: bool | None = None
    """Whether it has a backward pass; None where the reader cannot find out."""
    gradient_b: Bytes | None = None
    """Bytes of the gradients of one step; None where the file does not have them."""
    optimized: bool = False
    """Whether a compiler has already fused and scheduled it for a GPU."""
    compiled: CompiledMemory | None = None
    batch: Batch | None = None
    """Batch size that it was written with; None if the file has none."""
    unknown_trips: Annotated[int, Meta(ge=0)] = 0
    """Loops whose trip count the file does not contain."""
    notes: Annotated[list[Note], Meta(max_length=100)] = []


def fingerprint(ops: Sequence[Op], buffers: Sequence[Buffer]) -> str:
    """Return sha256 over what a program computes and keeps, without names and paths."""
    digest = hashlib.sha256(b"gpuwaste-program-1\n")
    encoder = msgspec.json.Encoder()
    for op in ops:
        what = (op.kind, op.dtype, op.flops, op.bytes_read, op.bytes_written, op.trips, op.shapes)
        digest.update(encoder.encode(what))
    for buffer in buffers:
        digest.update(encoder.encode((buffer.size_b, buffer.first, buffer.last, buffer.kind)))
    return digest.hexdigest()


def peak_b(buffers: Iterable[Buffer]) -> int:
    """Return the largest sum of buffers alive at the same operation, bytes."""
    change: dict[int, int] = {}
    for buffer in buffers:
        size = -(-buffer.size_b // ALIGNMENT_B) * ALIGNMENT_B
        change[buffer.first] = change.get(buffer.first, 0) + size
        change[buffer.last + 1] = change.get(buffer.last + 1, 0) - size
    peak = now = 0
    for place in sorted(change):
        now += change[place]
        peak = max(peak, now)
    return peak


@dataclass(frozen=True, slots=True)
class OpSum:
    """Executions in one step, their FLOPs, and the bytes they read and write."""

    count: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: "OpSum") -> "OpSum":
        return OpSum(self.count + other.count, self.flops + other.flops, self.bytes + other.bytes)


def op_sums(program: Program) -> dict[str, OpSum]:
    """Return the sums of one step keyed by "kind/dtype" ("mm/bf16"), sorted; loops count trip by trip."""
    sums: dict[tuple[str, str], list[float]] = {}
    for op in program.ops:
        row = sums.setdefault((op.kind, op.dtype), [0.0, 0.0, 0.0])
        row[0] += op.trips
        row[1] += op.trips * op.flops
        row[2] += op.trips * (op.bytes_read + op.bytes_written)
    return {f"{kind}/{dtype}": OpSum(*row) for (kind, dtype), row in sorted(sums.items())}


def by_kind(sums: Mapping[str, OpSum]) -> dict[str, OpSum]:
    """Return the sums with the element types of a kind added up."""
    merged: dict[str, OpSum] = {}
    for key, found in sums.items():
        kind = key.partition("/")[0]
        merged[kind] = merged.get(kind, OpSum()) + found
    return merged
