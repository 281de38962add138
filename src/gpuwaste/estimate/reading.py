"""Reading a user's file as a Program: the format is recognized by the file's first bytes, not by its name."""

import gc
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO, Final

from gpuwaste.core.child_process import ChildEnded, ChildLimits, call_in_child
from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.core.files import open_plain
from gpuwaste.estimate.program import Program

_READERS: Final = ("hlo", "stablehlo", "neutral", "onnx_model")
"""Modules of readers/, in the order in which they are tried; ONNX has no magic number and is the last."""
NATIVE_LIMITS: Final = ChildLimits(cpu_s=60, memory_b=4 << 30, wall_s=300.0)
"""For a reader that uses a C++ library, which has no limits of its own and ignores Ctrl-C."""
_HEAD_B: Final = 1 << 16  # licences and comments may be before the first word
_COMPRESSED: Final = {
    b"\x1f\x8b": "gzip",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
    b"(\xb5/\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


def read_in_child(path: Path) -> list[Program]:
    """Read a file's programs in a child process with limits of time and memory. Raises as read_program."""
    try:
        return call_in_child(read_here, path, NATIVE_LIMITS)
    except ChildEnded as error:
        raise ParseError(f"{path}: cannot be read: {error}") from None


def read_here(path: Path) -> list[Program]:
    """Read a file's programs in this process, with any reader. Raises as read_program."""
    return list(read_programs(path, native=None))


Native = Callable[[Path], list[Program]] | None


def read_program(path: Path, native: Native = read_in_child) -> Program:
    """Read a program. Raises UsageError without a file, ParseError where it contains no program: one line each.

    `native` reads formats that a library in C++ parses; None does it in this process, for as long as it takes.
    """
    found = read_programs(path, native)
    program = next(found)
    if next(found, None) is not None:
        raise ParseError(f"{path}: one program at several batch sizes: expected one (run the probe without --batch)")
    return program


def read_programs(path: Path, native: Native = read_in_child) -> Iterator[Program]:
    """Yield a file's programs, several if a probe wrote several batch sizes. Raises as read_program."""
    try:
        stream = open_plain(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    with stream:
        head = stream.read(_HEAD_B)
        if not head:
            raise ParseError(f"{path}: the file is empty")
        for magic, name in _COMPRESSED.items():
            if head.startswith(magic):
                raise ParseError(f"{path}: compressed with {name}: decompress it first")
        stream.seek(0)
        reader = _reader(head)
        if reader is None:
            raise ParseError(
                f"{path}: not a program: expected HLO text, StableHLO, ONNX, or the JSON that a probe writes "
                "(gpuwaste estimate probe torch)"
            )
        size = fstat(stream.fileno()).st_size
        if size > reader.MAX_FILE_B:
            raise ParseError(
                f"{path}: {size >> 20} MiB; {reader.TITLE} is read up to {reader.MAX_FILE_B >> 20} MiB{reader.SMALLER}"
            )
        if native is not None and getattr(reader, "NATIVE", False):
            yield from native(path)
            return
        programs = getattr(reader, "read_several", partial(_only, reader))(stream, path.name)
        while (program := _next(programs, path)) is not None:
            yield program


def _only(reader: Any, stream: BinaryIO, name: str) -> Iterator[Program]:
    """Yield the program of a format with one program per file."""
    yield reader.read(stream, name)


def _next(programs: Iterator[Program], path: Path) -> Program | None:
    """Return the next program, read without the garbage collector; None after the last."""
    collects = gc.isenabled()
    gc.disable()  # a program is hundreds of thousands of objects without cycles
    try:
        return next(programs, None)
    except ParseError as error:
        raise ParseError(f"{path}: {error}") from None
    except (RecursionError, MemoryError):
        raise ParseError(f"{path}: too deep or too large to read") from None
    finally:
        if collects:
            gc.enable()


def _reader(head: bytes) -> Any:
    for name in _READERS:
        reader = import_module(f"gpuwaste.estimate.readers.{name}")
        if reader.recognizes(head):
            return reader
    return None
