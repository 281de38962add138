"""HLO text into computations and instructions, as written by `as_text(dialect="hlo")` and XLA's dumps.

Lines are read one by one, so memory depends on the number of instructions, not on the size of the file; constants are
not kept. All work is linear in the file and bounded.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.readers.hlo_shape import MAX_DEPTH, Type, Types

# No possessive group around alternatives: Python 3.11.2, that of Debian 12, takes them for no match.
_LEADING: Final = re.compile(rb"(?:\s++|//[^\n]*+|/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*/)*")
_MARK: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|//|/\*', re.DOTALL)
"""A text in quotes, which may contain anything, or the beginning of a comment. Every match is used once: linear."""
MAX_INSTRUCTIONS: Final = 400_000
MAX_LINE: Final = 4 << 20
MAX_OPERANDS: Final = 20_000
MAX_ALL_OPERANDS: Final = 1_500_000
MAX_SCALAR: Final = 24
"""Characters kept of a constant: a loop's length has fewer."""
_PLAIN: Final = re.compile(
    r"\s++(ROOT )?+%?+([\w.\-]{1,500}+) = ([^( ][^ ]*+) ([a-z][a-z0-9\-]{0,60}+)"
    r"\((%?+[\w.\-]++(?:, %?+[\w.\-]++)*+)?+\)"
)
"""Matches most lines: one array, operands that are only names. It never backtracks; other lines are read in parts."""
_NAME: Final = re.compile(r"\s+(ROOT )?%?([\w.\-]{1,500}) = ")
_OPCODE: Final = re.compile(r" ?([a-z][a-z0-9\-]{0,60})\(")
_SIMPLE: Final = re.compile(r"([^()]*)\)")
_HEADER: Final = re.compile(r"(ENTRY )?%?([\w.\-]{1,500}) (?=[({])")
_BRACKETS: Final = re.compile(r"[()]")
_DIMENSIONS: Final = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}")
_TUPLE: Final = re.compile(r"\([^()]*\)")
_ALIAS: Final = re.compile(r"\{([\d, ]{0,100})\}: \((\d{1,9}), \{([\d, ]{0,100})\}")


def without_leading(head: bytes) -> bytes:
    """Return the beginning of a file without the comments and blanks before its first word."""
    found = _LEADING.match(head)
    return head[found.end() :] if found else head


def without_comments(lines: Iterable[str]) -> Iterator[str]:
    """Yield the same number of lines, without comments. Raises ParseError, with the line, for an open comment."""
    begun = 0  # the line in which the open comment began; 0: none is open
    for number, line in enumerate(lines, 1):
        end = line.find("*/") + 2 if begun else 0
        if begun and end < 2:  # noqa: PLR2004 - the comment goes on
            yield ""
        elif "//" in line or "/*" in line or begun:
            text, is_open = _stripped(line, end)
            begun = number if is_open else 0
            yield text
        else:
            yield line
    if begun:
        raise ParseError(f"line {begun}: comment without its end")


def _stripped(line: str, start: int) -> tuple[str, bool]:
    """Return a line from `start` on without comments, and whether one is open at its end."""
    kept, place = [], start
    while (mark := _MARK.search(line, place)) is not None:
        place = mark.end()
        if mark[0].startswith('"'):
            continue
        kept.append(line[start : mark.start()])
        end = line.find("*/", place) if mark[0] == "/*" else len(line)
        if end < 0 or mark[0] == "//":
            return "".join(kept), end < 0
        start = place = end + 2
    return "".join([*kept, line[start:]]), False


class Instruction(Struct):
    """One line: a value, its operation and its operands."""

    name: str
    opcode: str
    type: Type
    operands: list[str]
    attributes: str
    """The rest of the line."""


class Computation(Struct):
    """A function: its instructions in order and the one whose value it returns."""

    name: str
    instructions: list[Instruction]
    root: int = -1


class Module(Struct):
    """A program in HLO."""

    name: str
    computations: dict[str, Computation]
    entry: str
    scheduled: bool
    aliases: dict[int, int]
    """Output leaf → entry parameter whose memory it reuses; only where both are arrays."""
    unknown_dtypes: set[str]


def read_module(lines: Iterable[str]) -> Module:
    """Read a module. Raises ParseError: one line with the line's number."""
    stream = enumerate(without_comments(lines), 1)
    number, head = next(((n, line.lstrip()) for n, line in stream if line.strip()), (0, ""))
    if not head.startswith("HloModule "):
        raise ParseError("not HLO text: the first line does not begin with HloModule")
    name = head.removeprefix("HloModule ").split(",", 1)[0].strip()[:200]
    reader = _HloReader()
    for number, line in stream:
        try:
            reader.line(line)
        except ParseError as error:
            raise ParseError(f"line {number}: {error}") from None
    if reader.open is not None or reader.entry is None:
        raise ParseError(f"line {number}: the file ends inside the program: it is truncated, write it again")
    return Module(
        name=name,
        computations=reader.computations,
        entry=reader.entry,
        scheduled="is_scheduled=true" in head,
        aliases=dict(_aliases(head)),
        unknown_dtypes=reader.types.unknown,
    )


def _aliases(head: str) -> Iterator[tuple[int, int]]:
    start = head.find("input_output_alias={")
    end = head.find(" }", start)
    if start < 0 or end < 0:
        return
    for out, parameter, inside in _ALIAS.findall(head[start:end]):
        if inside.strip():
            continue  # a part of a tuple parameter: rare, and then counted twice, never too little
        first = out.split(",")[0].strip()
        yield (int(first) if first else 0), int(parameter)


class _HloReader:
    """Collects computations line by line."""

    def __init__(self) -> None:
        self.computations: dict[str, Computation] = {}
        self.entry: str | None = None
        self.open: Computation | None = None
        self.types = Types()
        self._count = 0
        self._operands = 0

    def line(self, line: str) -> None:
        """Take one line of the file."""
        if len(line) > MAX_LINE:
            line = line[:MAX_LINE]
        if self.open is None:
            self._header(line)
        elif line.lstrip().startswith("}"):
            if self.open.root < 0:
                self.open.root = len(self.open.instructions) - 1
            if not self.open.instructions:
                raise ParseError(f"computation {self.open.name[:60]} is empty")
            self.open = None
        elif line.strip():
            self._instruction(line)

    def _header(self, line: str) -> None:
        if not line.rstrip().endswith("{"):
            return  # tables of file names and stack frames between computations
        match = _HEADER.match(line)
        if match is None:
            return
        self.open = Computation(match[2], [])
        if match[2] in self.computations:
            raise ParseError(f"computation {match[2][:60]} occurs twice")
        self.computations[match[2]] = self.open
        if match[1]:
            self.entry = match[2]

    def _instruction(self, line: str) -> None:
        plain = _PLAIN.match(line)
        if plain is not None:
            root, name, kind, opcode, inside = plain.groups("")
            rest = _rest(line, plain.end(), opcode)
            self._add(Instruction(name, opcode, self.types.read(kind), _named(inside, opcode), rest), root)
        else:
            self._parts(line)

    def _parts(self, line: str) -> None:
        """Take a line with a tuple type, or with operands that are more than names."""
        found = _NAME.match(line)
        if found is None:
            raise ParseError(f"{line.strip()[:60]!r}: expected name = type operation(...)")
        end = _type_end(line, found.end())
        opcode = _OPCODE.match(line, end)
        if opcode is None:
            raise ParseError(f"{found[2][:60]}: no operation after the type")
        operands, rest = _operands(line, opcode.end(), opcode[1])
        kind = self.types.read(line[found.end() : end])
        self._add(Instruction(found[2], opcode[1], kind, operands, rest), found[1])

    def _add(self, new: Instruction, root: str | None) -> None:
        """Add an instruction to the open computation; `root` is the word before it if the computation returns it."""
        self._count += 1
        if self._count > MAX_INSTRUCTIONS:
            raise ParseError(f"more than {MAX_INSTRUCTIONS} instructions")
        if self.open is None:  # the caller has checked; this is for the type checker
            raise ParseError("instruction outside of a computation")
        self._operands += len(new.operands)
        if self._operands > MAX_ALL_OPERANDS:
            raise ParseError(f"more than {MAX_ALL_OPERANDS} operands")
        if root:
            self.open.root = len(self.open.instructions)
        self.open.instructions.append(new)


def _type_end(line: str, start: int) -> int:
    """Return where the type that begins at `start` ends."""
    if not line.startswith("(", start):
        end = line.find(" ", start)
        if end < 0:
            raise ParseError("line ends inside of a type")
        return end
    return _closed(line, start + 1)


def _closed(line: str, start: int) -> int:
    """Return the place after the parenthesis that closes the one before `start`."""
    depth = 1
    for match in _BRACKETS.finditer(line, start):
        depth += 1 if match[0] == "(" else -1
        if depth == 0:
            return match.end()
    raise ParseError("parenthesis without its end: the line is cut")


def _operands(line: str, start: int, opcode: str) -> tuple[list[str], str]:
    """Return the names of operands and the attributes after them."""
    simple = _SIMPLE.match(line, start)
    end = simple.end() if simple else _closed(line, start)
    rest = _rest(line, end, opcode)
    inside = line[start : min(end - 1, start + MAX_SCALAR)] if opcode == "constant" else line[start : end - 1]
    if opcode in {"parameter", "constant"}:
        return [inside.strip()], rest
    if not inside.strip():
        return [], rest
    if "[" in inside or "(" in inside:  # with types before the names, as older versions write
        inside = _without_types(inside)
    return _few([words[-1].lstrip("%") for part in inside.split(",") if (words := part.split())]), rest


def _named(inside: str, opcode: str) -> list[str]:
    """Return the operands of a plain line."""
    if opcode in {"parameter", "constant"}:
        return [inside[:MAX_SCALAR].strip() if opcode == "constant" else inside]
    return _few(inside.replace("%", "").split(", ")) if inside else []


def _few(names: list[str]) -> list[str]:
    if len(names) > MAX_OPERANDS:
        raise ParseError(f"more than {MAX_OPERANDS} operands")
    return names


def _without_types(text: str) -> str:
    """Return operands without dimensions, layouts and tuple types: only an array's element type is before its name."""
    text = _DIMENSIONS.sub(" ", text)
    for _ in range(MAX_DEPTH):
        if "(" not in text:
            break
        text = _TUPLE.sub(" ", text)
    return text


def _rest(line: str, end: int, opcode: str) -> str:
    """Return the attributes that are used, from `end` on, without an operation's position in the source."""
    place = line.find(", metadata={", end)
    if place < 0:
        return line[end:].rstrip()
    config = line.find("backend_config=", place) if opcode in {"while", "custom-call"} else -1
    return line[end:place] + (f", {line[config:].rstrip()}" if config >= 0 else "")
