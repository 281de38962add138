"""The map of a cluster: each node with its GPUs by level, in groups that fill the width of any window.

A few nodes have a line each, with their names and letters. Many are columns next to each other, so small that 2,000
nodes of eight GPUs fit on one screen: a path per level and one hidden rectangle per node, a tenth of the bytes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from markupsafe import Markup

from gpuwaste.core.text import harmless
from gpuwaste.core.units import GpuTimeUnit
from gpuwaste.ledger.now.node_groups import NodeGroup, NodeOrder, node_groups
from gpuwaste.ledger.now.now_types import NodeRow
from gpuwaste.show.page_words import cut, letter

MOST_NODES: Final = 5000
MOST_NAMED: Final = 160
_MOST_GPUS: Final = 16
LEVELS: Final[Mapping[str, str]] = {
    "h": "high", "m": "moderate", "l": "low", "i": "idle", "s": "suspended", "u": "unknown", "f": "free",
}  # fmt: skip
"""The letters of NodeRow.levels, and f for free GPUs."""

_SCREEN: Final = (1400, 640)  # pixels for the map in a window of 1440 x 900
_SIZES: Final = ((9, 7), (8, 6), (7, 5), (6, 5), (5, 4), (4, 4), (4, 3), (3, 3), (3, 2), (2, 2))
_LABEL: Final = 16  # height of a group's label
_CHARACTER: Final = 6.5  # of a label
_GAP: Final = 8  # between groups; as in gpuwaste.css
_NAMED: Final = (16, 14)  # a GPU of a named node, with the gap to the next
_LINE: Final = 16

_GROUPS: Final = Markup('<div class="node-map{}">{}</div>')
_GROUP: Final = Markup("<figure><figcaption>{}</figcaption>{}</figure>")
_COLUMNS: Final = Markup('<svg width="{}" height="{}" role="img" aria-label="{}">{}</svg>')
_ROW: Final = Markup(
    '<div><span class="name">{}</span><svg width="{}" height="{}" role="img" aria-label="{}">{}</svg></div>'
)
_PATH: Final = Markup('<path class="{}" d="{}"/>')
_LETTER: Final = Markup('<text x="{}" y="11" class="of-{}">{}</text>')
_NODE: Final = Markup('<rect class="node" x="{}" y="0" width="{}" height="{}"><title>{}</title></rect>')


def node_map(nodes: Sequence[NodeRow], order: NodeOrder = "name") -> Markup:
    """Return the map of the first MOST_NODES nodes in this order; each node has a title with its figures."""
    groups = node_groups(nodes, order) if len(nodes) <= MOST_NODES else node_groups(nodes[:MOST_NODES], order)
    named = len(nodes) <= MOST_NAMED
    unit = GpuTimeUnit.of(node.wasted_s for node in nodes)
    if named:
        drawn = [_named(group, unit, alone=len(groups) == 1) for group in groups]
    else:
        size = _size(groups)
        drawn = [_GROUP.format(harmless(group.label), _columns(group, size, unit)) for group in groups]
    return _GROUPS.format(" named" if named else "", Markup("").join(drawn))


def _named(group: NodeGroup, unit: GpuTimeUnit, *, alone: bool) -> Markup:
    """Return a group as lines of a name and its GPUs; the label is left out where the names say the same."""
    rows = Markup("").join(_row(node, unit) for node in group.nodes)
    label = "" if alone or " to " in group.label else harmless(group.label)
    return _GROUP.format(label, rows) if label else Markup("<figure>{}</figure>").format(rows)


def _row(node: NodeRow, unit: GpuTimeUnit) -> Markup:
    step, side = _NAMED
    levels, marks = _cells(node), []
    for place, level in enumerate(levels):
        x = place * step + 1
        marks.append(_PATH.format(LEVELS[level], f"M{x} 1h{side}v{side}h-{side}z"))
        if level != "f":
            marks.append(_LETTER.format(x + side / 2, LEVELS[level], letter(LEVELS[level])))
    width, words = max(1, len(levels)) * step, _title(node, unit)
    marks.append(_NODE.format(0, width, _LINE, words))
    return _ROW.format(harmless(cut(node.node, 24)), width, _LINE, words, Markup("").join(marks))


def _columns(group: NodeGroup, size: tuple[int, int], unit: GpuTimeUnit) -> Markup:
    """Return a group as columns of GPUs, one for each node."""
    wide, high = size
    paths: dict[str, list[str]] = defaultdict(list)
    nodes = []
    for index, node in enumerate(group.nodes):
        levels, x = _cells(node), index * (wide + 1)
        for place, level in enumerate(levels):
            paths[level].append(f"M{x} {place * high}h{wide}v{high - 1}h-{wide}z")
        nodes.append(_NODE.format(x, wide, max(1, len(levels)) * high, _title(node, unit)))
    marks = [_PATH.format(LEVELS[level], "".join(path)) for level, path in sorted(paths.items())]
    words = f"{len(group.nodes)} {'node' if len(group.nodes) == 1 else 'nodes'}, each GPU by its level"
    return _COLUMNS.format(*_extent(group, size), words, Markup("").join([*marks, *nodes]))


def _extent(group: NodeGroup, size: tuple[int, int]) -> tuple[int, int]:
    return len(group.nodes) * (size[0] + 1), max(1, *(len(_cells(node)) for node in group.nodes)) * size[1]


def _size(groups: Sequence[NodeGroup]) -> tuple[int, int]:
    """Return the largest size of a GPU at which the map fits on a screen."""
    return next((size for size in _SIZES if _height(groups, size) <= _SCREEN[1]), _SIZES[-1])


def _height(groups: Sequence[NodeGroup], size: tuple[int, int]) -> int:
    """Return about how high the map is on a screen, with its groups in lines."""
    x, line, height = 0, 0, 0
    for group in groups:
        wide, high = _extent(group, size)
        wide = max(wide, ceil(_CHARACTER * len(group.label))) + _GAP
        if x and x + wide > _SCREEN[0]:
            x, height, line = 0, height + line, 0
        x, line = x + wide, max(line, high + _LABEL + _GAP)
    return height + line


def _cells(node: NodeRow) -> str:
    """Return a letter for each GPU: those that jobs hold, then the free ones."""
    held = "".join(level if level in LEVELS else "u" for level in node.levels[:_MOST_GPUS])
    free = max(0, min(node.gpus or 0, _MOST_GPUS) - len(held))
    return held + "f" * free


def _title(node: NodeRow, unit: GpuTimeUnit) -> str:
    of = "" if node.gpus is None else f" of {node.gpus}"
    counts = ((node.levels.count(level), name) for level, name in LEVELS.items())
    parts = ", ".join(f"{count} {name}" for count, name in counts if count)
    held = f"{len(node.levels)}{of} GPUs held" + (f": {parts}" if parts else "")
    wasted = f"; {unit.words(node.wasted_s)} wasted" if node.wasted_s else ""
    return f"{harmless(cut(node.node))}: {held}{wasted}"
