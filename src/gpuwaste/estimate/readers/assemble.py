"""A reader's graph as a Program: steps in the order that needs less memory, buffers, fingerprint."""

from collections.abc import Sequence

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.liveness import peak_b
from gpuwaste.estimate.program import CompiledMemory, Op, Program, Source, fingerprint
from gpuwaste.estimate.readers.buffer_lifetimes import buffers_of
from gpuwaste.estimate.readers.graph import Graph
from gpuwaste.estimate.readers.order import freeing_order
from gpuwaste.estimate.readers.steps import KernelStep, Steps

_MAX_SHAPES = 8


def program_of(
    graph: Graph,
    name: str,
    source: Source,
    *,
    training: bool | None = None,
    compiled: CompiledMemory | None = None,
    notes: Sequence[str] = (),
) -> Program:
    """Return the neutral form of a graph. Raises ParseError."""
    building = Steps(graph)
    steps = building.build()
    names = building.names
    buffers = buffers_of(graph, names, steps)
    if not graph.fused:
        kept = {names[each] for each in graph.parameters} | {names[leaf] for leaf, _ in graph.outputs}
        other = freeing_order(steps, graph.sizes, kept)
        other_buffers = buffers_of(graph, names, other)
        if peak_b(other_buffers) < peak_b(buffers):
            steps, buffers = other, other_buffers
    ops = [_op(graph, step) for step in steps]
    if not ops:
        raise ParseError("no operations in the program")
    parameters = sum(buffer.size_b for buffer in buffers if buffer.kind == "parameter")
    outputs = sum(buffer.size_b for buffer in buffers if buffer.kind == "output")
    return Program(
        name=name[:256],
        source=source,
        ops=ops,
        buffers=buffers,
        parameters_b=parameters,
        outputs_b=outputs,
        fingerprint=fingerprint(ops, buffers),
        training=training,
        optimized=graph.fused,
        compiled=compiled,
        unknown_trips=graph.unknown_trips,
        notes=[*graph.notes, *notes][:100],
    )


def _op(graph: Graph, step: KernelStep) -> Op:
    arrays = [*step.writes[:1], *step.reads][:_MAX_SHAPES]
    return Op(
        kind=step.kind,
        name=step.name[:256],
        dtype=step.dtype,
        flops=step.flops,
        bytes_read=float(sum(step.reads.values())),
        bytes_written=step.written_b,
        trips=step.trips,
        shapes=tuple(graph.shapes[each] for each in arrays),
    )
