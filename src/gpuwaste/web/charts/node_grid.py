"""Every node as a small column of its GPUs by level: two thousand nodes in one screen.

One path a level instead of an element a GPU, and one hidden rectangle a node that names it: a tenth of the bytes.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from gpuwaste.core.text import harmless
from gpuwaste.documents.now_types import NodeRow
from gpuwaste.web.words import cut

MOST_NODES: Final = 5000
_MOST_GPUS: Final = 16
_A_ROW: Final = 100
_WIDTH, _HEIGHT, _GAP = 8, 6, 2
_LEVELS: Final = {
    "h": "high", "m": "moderate", "l": "low", "i": "idle", "s": "suspended", "u": "unknown", "f": "free",
}  # fmt: skip
"""The letters of NodeRow.levels, and f for what no job holds."""

_GRID: Final = Markup(
    '<svg class="node-grid" width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
)
_PATH: Final = Markup('<path class="{}" d="{}"/>')
_NAME: Final = Markup('<rect class="node" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>')


def node_grid(nodes: Sequence[NodeRow]) -> Markup:
    """Return the grid of the first MOST_NODES nodes, in their order; text for each node is its title."""
    shown = nodes[:MOST_NODES]
    cells = [_cells(node) for node in shown]
    tall = max(map(len, cells), default=1) * _HEIGHT + 2 * _GAP
    paths: dict[str, list[str]] = defaultdict(list)
    names = []
    for index, (node, levels) in enumerate(zip(shown, cells, strict=True)):
        x, y = index % _A_ROW * (_WIDTH + _GAP), index // _A_ROW * tall
        for place, level in enumerate(levels):
            paths[level].append(f"M{x} {y + place * _HEIGHT}h{_WIDTH}v{_HEIGHT - 1}h-{_WIDTH}z")
        names.append(_NAME.format(x, y, _WIDTH, len(levels) * _HEIGHT, _title(node)))
    marks = [_PATH.format(_LEVELS[level], "".join(path)) for level, path in sorted(paths.items())]
    width, height = min(len(shown), _A_ROW) * (_WIDTH + _GAP), -(-len(shown) // _A_ROW) * tall
    return _GRID.format(
        width, height, width, height, f"{len(shown)} nodes, each GPU by its level", Markup("").join(marks + names)
    )


def _cells(node: NodeRow) -> str:
    """Return a letter for each GPU: those that jobs hold, then the free ones."""
    held = "".join(letter if letter in _LEVELS else "u" for letter in node.levels[:_MOST_GPUS])
    free = max(0, min(node.gpus or 0, _MOST_GPUS) - len(held))
    return held + "f" * free


def _title(node: NodeRow) -> str:
    of = "" if node.gpus is None else f" of {node.gpus}"
    counts = ((node.levels.count(letter), name) for letter, name in _LEVELS.items())
    parts = ", ".join(f"{count} {name}" for count, name in counts if count)
    held = f"{len(node.levels)}{of} GPUs held" + (f": {parts}" if parts else "")
    return f"{harmless(cut(node.node))}: {held}"
