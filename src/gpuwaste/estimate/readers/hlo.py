"""HLO text, as written by JAX with `lower(...).as_text(dialect="hlo")` and by XLA with --xla_dump_hlo_as_text."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.program import CompiledMemory, Program, Source
from gpuwaste.estimate.readers.assemble import program_of
from gpuwaste.estimate.readers.hlo_graph import graph_of
from gpuwaste.estimate.readers.hlo_text import MAX_LINE, read_module, without_leading

TITLE: Final = "HLO text"
MAX_FILE_B: Final = 128 << 20
SMALLER: Final = ": write it without large constants"
_CHUNK: Final = 1 << 16


def recognizes(head: bytes) -> bool:
    """Return whether a file begins like HLO text, after its comments."""
    return without_leading(head).startswith(b"HloModule ")


def read(stream: BinaryIO, name: str) -> Program:
    """Read a program. Raises ParseError."""
    return read_text(_lines(stream), name)


def read_text(
    lines: Iterable[str],
    name: str,
    *,
    source: Source = "hlo",
    compiled: CompiledMemory | None = None,
    notes: Iterable[str] = (),
) -> Program:
    """Read a program from lines of HLO text. Raises ParseError."""
    module = read_module(lines)
    graph = graph_of(module)
    if module.unknown_dtypes:
        graph.notes.append(f"unknown element types counted as 4 bytes: {', '.join(sorted(module.unknown_dtypes)[:8])}")
    if graph.unknown_trips:
        graph.notes.append(f"loops of unknown length counted once: {graph.unknown_trips}")
    return program_of(graph, module.name or name, source, compiled=compiled, notes=tuple(notes))


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Yield lines; a line longer than MAX_LINE is cut, its rest is read and dropped."""
    while line := stream.readline(MAX_LINE):
        if b"\0" in line:
            raise ParseError("binary data inside of HLO text")
        yield line.decode("utf-8", "replace")
        while not line.endswith(b"\n") and (line := stream.readline(_CHUNK)):
            pass
