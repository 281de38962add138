"""How large an ONNX model is once its functions are expanded, as shape inference expands them: counted, not done."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpuwaste.core.errors import ParseError

_OPEN: Final = -1
_Key = tuple[str, str, str]


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
