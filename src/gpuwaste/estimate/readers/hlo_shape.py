"""Types of HLO text: f32[8,80]{1,0} is an array, (s32[], f32[8]) a tuple of types."""

import re
from math import prod
from typing import Final

from msgspec import Struct

from gpuwaste.core.errors import ParseError
from gpuwaste.estimate.program import DTYPE_BITS, Dtype

MAX_LEAVES: Final = 20_000
MAX_DEPTH: Final = 40
_MAX_DIMENSIONS: Final = 32
_MAX_ELEMENTS: Final = 1 << 50
_TOKEN: Final = re.compile(r"[a-z]+(?:\[\])?")
_ARRAY: Final = re.compile(r"([a-z][a-z0-9]{0,30})\[([^\[\]]*)\](\{[^{}]*\})?")
_DTYPES: Final[dict[str, Dtype]] = {
    "f64": "f64", "f32": "f32", "f16": "f16", "bf16": "bf16", "c64": "c64", "c128": "c128", "pred": "bool",
    "s64": "i64", "u64": "i64", "s32": "i32", "u32": "i32", "s16": "i16", "u16": "i16", "s8": "i8", "u8": "i8",
    "s4": "i4", "u4": "i4", "s2": "i4", "u2": "i4", "s1": "i4", "u1": "i4", "f4e2m1fn": "f4",
}  # fmt: skip


class ArrayShape(Struct, frozen=True, gc=False):
    """An array: element type, dimensions, number of elements, bytes."""

    dtype: Dtype
    dims: tuple[int, ...]
    elements: int
    size_b: int


def array(dtype: Dtype, dims: tuple[int, ...]) -> ArrayShape:
    """Return the array of a type and dimensions."""
    elements = prod(dims)
    return ArrayShape(dtype, dims, elements, (elements * DTYPE_BITS[dtype] + 7) // 8)


Type = ArrayShape | tuple["Type", ...]
NOTHING: Final = array("other", (0,))
"""A token or an opaque value: it takes no memory."""


class Types:
    """Parses types; equal texts are parsed once."""

    def __init__(self) -> None:
        self._read: dict[str, ArrayShape] = {}
        self.unknown: set[str] = set()
        """Element types that the reader does not know."""

    def read(self, text: str) -> Type:
        """Return the type of a text. Raises ParseError."""
        if not text.startswith("("):
            return self._array(text)
        stack: list[list[Type]] = []
        place, leaves = 0, 0
        while place < len(text):
            sign = text[place]
            if sign == "(":
                stack.append([])
                if len(stack) > MAX_DEPTH:
                    raise ParseError(f"tuple nested deeper than {MAX_DEPTH}")
                place += 1
            elif sign == ")":
                found = tuple(stack.pop())
                if not stack:
                    return found
                stack[-1].append(found)
                place += 1
            elif sign in ", ":
                place += 1
            else:
                end = self._end(text, place)
                stack[-1].append(self._array(text[place:end]))
                place, leaves = end, leaves + 1
                if leaves > MAX_LEAVES:
                    raise ParseError(f"tuple of more than {MAX_LEAVES} arrays")
        raise ParseError("tuple type without its end")

    @staticmethod
    def _end(text: str, place: int) -> int:
        match = _ARRAY.match(text, place)
        if match is None:
            token = _TOKEN.match(text, place)
            if token is None:
                raise ParseError(f"type {text[place : place + 40]!r}: expected f32[8,80]")
            return token.end()
        return match.end()

    def _array(self, text: str) -> ArrayShape:
        found = self._read.get(text)
        if found is None:
            found = self._read[text] = self._new(text)
        return found

    def _new(self, text: str) -> ArrayShape:
        match = _ARRAY.match(text)
        if match is None or match[1] in {"token", "opaque"}:
            if text.startswith(("token", "opaque")):
                return NOTHING
            raise ParseError(f"type {text[:40]!r}: expected f32[8,80]")
        dims = _dimensions(match[2])
        dtype = _DTYPES.get(match[1])
        if dtype is None:
            dtype = "f8" if match[1].startswith("f8") else "other"
            if dtype == "other":
                self.unknown.add(match[1])
        if prod(dims) > _MAX_ELEMENTS:
            raise ParseError(f"type {text[:40]!r}: more elements than any GPU holds")
        return array(dtype, dims)


def leaves(of: Type) -> list[ArrayShape]:
    """Return the arrays of a type, in order."""
    if isinstance(of, ArrayShape):
        return [of]
    return [leaf for part in of for leaf in leaves(part)]


def _dimensions(text: str) -> tuple[int, ...]:
    if not text:
        return ()
    parts = text.split(",")
    if len(parts) > _MAX_DIMENSIONS:
        raise ParseError(f"array of more than {_MAX_DIMENSIONS} dimensions")
    dims = []
    for part in parts:
        word = part.strip()
        if word.startswith("<=") or word == "?":
            raise ParseError(f"dynamic shape [{text[:40]}]: lower the program with static shapes")
        if not word.isascii() or not word.isdigit() or len(word) > 15:  # noqa: PLR2004 - 2**50 has 16 digits
            raise ParseError(f"dimension {word[:20]!r}: expected a number")
        dims.append(int(word))
    return tuple(dims)
