"""The JSON that probes write: the neutral form itself, or a program's HLO text with its compiler's memory figure.

A probe runs in the user's environment and may be wrong: its values are checked where possible, the fingerprint is
computed here, and a compiler's figure that does not belong to the program is not used.
"""

from collections.abc import Iterator
from math import prod, sqrt
from typing import Annotated, BinaryIO, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from gpuwaste.core.codec import problem
from gpuwaste.core.errors import ParseError
from gpuwaste.core.typed import decode
from gpuwaste.estimate.program import (
    MAX_BUFFERS,
    MAX_OPS,
    Batch,
    Buffer,
    Bytes,
    CompiledMemory,
    Name,
    Note,
    Op,
    Program,
    Source,
    fingerprint,
)
from gpuwaste.estimate.readers import hlo

T = TypeVar("T")
TITLE: Final = "a probe's JSON"
MAX_FILE_B: Final = 64 << 20
MAX_PROGRAMS: Final = 16
SMALLER: Final = ""
_SLACK: Final = 1.02
_PRODUCTS: Final = frozenset({"mm", "bmm"})
_SHAPES: Final = 3  # result, two operands
_MOST_ELEMENTS: Final = 1 << 60
_OTHER_PROGRAM: Final = 0.05
_ALIGNED_B: Final = 1 << 20
_SEVERAL: Final = b'"gpuwaste_programs"'
_SEVERAL_WITHIN: Final = 64  # bytes: the probe writes this key first


class Written(Struct, kw_only=True, frozen=True):
    """The output of a probe."""

    gpuwaste_program: Annotated[int, Meta(ge=1, le=1)]
    name: Name
    source: Source
    ops: Annotated[list[Op], Meta(max_length=MAX_OPS)] = []
    buffers: Annotated[list[Buffer], Meta(max_length=MAX_BUFFERS)] = []
    hlo: str | None = None
    """HLO text in place of ops and buffers."""
    compiled: CompiledMemory | None = None
    batch: Batch | None = None
    training: bool | None = None
    gradient_b: Bytes | None = None
    notes: Annotated[list[Note], Meta(max_length=50)] = []
    document: Literal["program"] = "program"


class WrittenSeveral(Struct, kw_only=True, frozen=True):
    """One program at several batch sizes, as a probe with --batch writes it."""

    gpuwaste_programs: Annotated[int, Meta(ge=1, le=1)]
    programs: Annotated[list[Written], Meta(min_length=1, max_length=MAX_PROGRAMS)]


def recognizes(head: bytes) -> bool:
    """Return whether a file begins like a JSON object."""
    return head.lstrip().startswith(b"{")


def read(stream: BinaryIO, name: str) -> Program:
    """Read a program. Raises ParseError."""
    found = list(read_several(stream, name))
    if len(found) > 1:
        raise ParseError(f"{len(found)} programs in one file: expected one")
    return found[0]


def read_several(stream: BinaryIO, name: str) -> Iterator[Program]:
    """Yield the program of a file, or the same at each batch size that the probe wrote. Raises ParseError."""
    data = stream.read(MAX_FILE_B + 1)
    if _SEVERAL not in data[:_SEVERAL_WITHIN]:
        yield _program(_decoded(data, Written), name)
        return
    programs = _decoded(data, WrittenSeveral).programs
    del data
    batches = [each.batch for each in programs]
    if None in batches or len(set(batches)) < len(batches):
        raise ParseError("several programs need a batch size each, all different: run the probe again with --batch")
    for written in programs:
        try:
            yield _program(written, name)
        except ParseError as error:
            raise ParseError(f"batch {written.batch}: {error}") from None


def _decoded(data: bytes, wanted: type[T]) -> T:
    try:
        return decode(data, wanted)
    except msgspec.ValidationError as error:
        raise ParseError(f"not the JSON that a probe writes: {problem(error)}: run the probe again") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ParseError(f"not JSON, or cut: {problem(error)}: run the probe again") from None


def _program(written: Written, name: str) -> Program:
    if written.hlo is not None:
        return _of_hlo(written, name)
    if not written.ops:
        raise ParseError("no operations in the program: run the probe again")
    _check(written)
    program = Program(
        name=written.name or name[:256],
        source=written.source,
        ops=written.ops,
        buffers=written.buffers,
        parameters_b=sum(each.size_b for each in written.buffers if each.kind == "parameter"),
        outputs_b=sum(each.size_b for each in written.buffers if each.kind == "output"),
        fingerprint=fingerprint(written.ops, written.buffers),
        batch=written.batch,
        training=written.training,
        gradient_b=written.gradient_b,
        compiled=written.compiled,
        notes=list(written.notes),
    )
    return believed(program)


def believed(program: Program) -> Program:
    """Return the program without a compiler's figure that cannot be its own, with a note about that."""
    compiled = program.compiled
    if compiled is None:
        return program
    near = abs(compiled.argument_b - program.parameters_b) <= max(_ALIGNED_B, _OTHER_PROGRAM * program.parameters_b)
    if near and compiled.alias_b <= max(compiled.output_b, compiled.argument_b):
        return program
    note = (
        f"the compiler's memory figure is not used: it counts {compiled.argument_b} bytes of arguments, "
        f"the program has {program.parameters_b}"
    )
    return msgspec.structs.replace(program, compiled=None, notes=[*program.notes[:99], note])


def _of_hlo(written: Written, name: str) -> Program:
    if written.ops or written.buffers:
        raise ParseError("both HLO text and operations in one file: run the probe again")
    program = hlo.read_text(
        (written.hlo or "").splitlines(),
        written.name or name,
        source=written.source,
        compiled=written.compiled,
        notes=written.notes,
    )
    named = written.name or program.name
    return believed(msgspec.structs.replace(program, name=named, training=written.training, batch=written.batch))


def _check(written: Written) -> None:
    """Raise ParseError where numbers contradict each other."""
    last = len(written.ops) - 1
    for place, buffer in enumerate(written.buffers):
        if buffer.first > buffer.last or buffer.last > last:
            raise ParseError(
                f"buffer {place}: in use from operation {buffer.first} to {buffer.last}, but operations are 0 to {last}"
            )
    for place, op in enumerate(written.ops):
        if op.kind in _PRODUCTS and len(op.shapes) >= _SHAPES:
            sizes = [prod(shape) for shape in op.shapes[:_SHAPES]]
            if max(sizes) > _MOST_ELEMENTS:
                raise ParseError(f"operation {place}: shape of more elements than any GPU holds: not a probe's file")
            most = 2 * sqrt(float(prod(sizes)))
            if op.flops > most * _SLACK:
                raise ParseError(
                    f"operation {place}: {op.flops:.3g} FLOPs, but its shapes allow at most {most:.3g}: "
                    "not a probe's file"
                )
