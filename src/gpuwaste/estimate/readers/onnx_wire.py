"""An ONNX file before it is parsed: removal of its weights, and its size with functions expanded.

A model's weights are most of its file; this code walks the wire format of protobuf, so that they are never copied.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpuwaste.core.errors import ParseError

_GRAPH: Final = 7
"""ModelProto.graph"""
_INITIALIZER: Final = 5
"""GraphProto.initializer"""
_CONTENTS: Final = frozenset({4, 5, 6, 7, 9, 10, 11})
"""TensorProto's data fields."""
_EXTERNAL: Final = 13
"""TensorProto.external_data: no other file is ever opened."""
_KEPT_B: Final = 256
"""Contents of this size are kept: shapes that the graph computes with."""
_VARINT: Final = 10
_OPEN: Final = -1
_Key = tuple[str, str, str]


def without_weights(data: memoryview) -> bytes:
    """Return the model without the contents of its initializers. Raises ParseError."""
    parts: list[bytes] = []
    for number, field, value in _fields(data):
        if number == _GRAPH and value is not None:
            parts.append(_wrapped(_GRAPH, _graph(value)))
        else:
            parts.append(bytes(field))
    return b"".join(parts)


def _graph(data: memoryview) -> bytes:
    parts: list[bytes] = []
    for number, field, value in _fields(data):
        if number == _INITIALIZER and value is not None:
            kept = [bytes(inner) for inner_number, inner, contents in _fields(value) if _small(inner_number, contents)]
            parts.append(_wrapped(_INITIALIZER, b"".join(kept)))
        else:
            parts.append(bytes(field))
    return b"".join(parts)


def _small(number: int, contents: memoryview | None) -> bool:
    """Return whether a field of an initializer is kept: its name, its shape, a few numbers."""
    if number == _EXTERNAL:
        return False
    return number not in _CONTENTS or (contents is not None and len(contents) <= _KEPT_B)


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview, memoryview | None]]:
    """Yield each field of a message: number, the field as written, its contents if they have a length."""
    place, end = 0, len(data)
    while place < end:
        start = place
        key, place = _varint(data, place)
        kind = key & 7
        value: memoryview | None = None
        if kind == 0:
            _, place = _varint(data, place)
        elif kind == 1:
            place += 8
        elif kind == 2:  # noqa: PLR2004 - wire type of what has a length
            length, place = _varint(data, place)
            value = data[place : place + length]
            place += length
        elif kind == 5:  # noqa: PLR2004 - wire type of four bytes
            place += 4
        else:
            raise ParseError("not ONNX")
        if place > end or not key >> 3:
            raise ParseError("not ONNX, or cut")
        yield key >> 3, data[start:place], value


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(_VARINT):
        if place >= len(data):
            raise ParseError("not ONNX, or cut")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:  # noqa: PLR2004 - the last byte
            return value, place
    raise ParseError("not ONNX")


def _wrapped(number: int, data: bytes) -> bytes:
    return _number((number << 3) | 2) + _number(len(data)) + data


def _number(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - the last byte is smaller
        written.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes([*written, value])


def expanded_nodes(model: Any) -> int:
    """Return the nodes of a ModelProto with every call of a function replaced by its body, those of branches too.

    Raises ParseError where a function calls itself.
    """
    functions = {(each.domain, each.name, each.overload): each.node for each in model.functions}
    return _counted(model.graph.node, functions, {})


def _counted(nodes: Iterable[Any], functions: dict[_Key, Any], known: dict[_Key, int]) -> int:
    found = 0
    for node in _with_branches(nodes):
        found += 1
        key = (node.domain, node.op_type, node.overload)
        if key in functions:
            found += _body(key, functions, known)
    return found


def _body(key: _Key, functions: dict[_Key, Any], known: dict[_Key, int]) -> int:
    if known.get(key) == _OPEN:
        raise ParseError(f"function {key[1][:60]!r} calls itself")
    if key not in known:
        known[key] = _OPEN
        known[key] = _counted(functions[key], functions, known)
    return known[key]


def _with_branches(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield nodes, and those of the graphs that are their attributes: bodies of loops and branches."""
    left = list(nodes)
    while left:
        node = left.pop()
        yield node
        for attribute in node.attribute:
            left.extend(attribute.g.node)
            for graph in attribute.graphs:
                left.extend(graph.node)
