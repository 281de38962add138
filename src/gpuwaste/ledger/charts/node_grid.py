"""Every node as a small column of its GPUs by level: two thousand nodes in one screen.

One path a level instead of an element a GPU, and one hidden rectangle a node that names it: a tenth of the bytes.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from gpuwaste.core.text import harmless
from gpuwaste.ledger.now.now_types import NodeRow
from gpuwaste.show.page_words import cut, letter

MOST_NODES: Final = 5000
_MOST_GPUS: Final = 16
_A_ROW: Final = 100
_WIDTH, _HEIGHT, _GAP = 8, 6, 2
_LARGEST: Final = 4  # times: a few nodes are drawn larger, each GPU with the letter of its level
_LEVELS: Final = {
    "h": "high", "m": "moderate", "l": "low", "i": "idle", "s": "suspended", "u": "unknown", "f": "free",
}  # fmt: skip
"""The letters of NodeRow.levels, and f for what no job holds."""

_GRID: Final = Markup(
    '<svg class="node-grid" width="{}" height="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
)
_PATH: Final = Markup('<path class="{}" d="{}"/>')
_LETTER: Final = Markup('<text x="{}" y="{}" class="of-{}">{}</text>')
_NAME: Final = Markup('<rect class="node" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>')


def node_grid(nodes: Sequence[NodeRow]) -> Markup:
    """Return the grid of the first MOST_NODES nodes, in their order; text for each node is its title."""
    shown = nodes[:MOST_NODES]
    cells = [_cells(node) for node in shown]
    tall = max(map(len, cells), default=1) * _HEIGHT + 2 * _GAP
    paths: dict[str, list[str]] = defaultdict(list)
    names, letters = [], []
    scale = max(1, min(_LARGEST, _A_ROW // max(1, len(shown))))
    for index, (node, levels) in enumerate(zip(shown, cells, strict=True)):
        x, y = index % _A_ROW * (_WIDTH + _GAP), index // _A_ROW * tall
        for place, level in enumerate(levels):
            paths[level].append(f"M{x} {y + place * _HEIGHT}h{_WIDTH}v{_HEIGHT - 1}h-{_WIDTH}z")
            if scale == _LARGEST and level != "f":
                name = _LEVELS[level]
                letters.append(_LETTER.format(x + _WIDTH / 2, y + place * _HEIGHT + _HEIGHT - 2, name, letter(name)))
        names.append(_NAME.format(x, y, _WIDTH, len(levels) * _HEIGHT, _title(node)))
    marks = [_PATH.format(_LEVELS[level], "".join(path)) for level, path in sorted(paths.items())]
    width, height = min(len(shown), _A_ROW) * (_WIDTH + _GAP), -(-len(shown) // _A_ROW) * tall
    said = f"{len(shown)} {'node' if len(shown) == 1 else 'nodes'}, each GPU by its level"
    drawn = Markup("").join([*marks, *letters, *names])
    return _GRID.format(scale * width, scale * height, width, height, said, drawn)


def _cells(node: NodeRow) -> str:
    """Return a letter for each GPU: those that jobs hold, then the free ones."""
    held = "".join(level if level in _LEVELS else "u" for level in node.levels[:_MOST_GPUS])
    free = max(0, min(node.gpus or 0, _MOST_GPUS) - len(held))
    return held + "f" * free


def _title(node: NodeRow) -> str:
    of = "" if node.gpus is None else f" of {node.gpus}"
    counts = ((node.levels.count(level), name) for level, name in _LEVELS.items())
    parts = ", ".join(f"{count} {name}" for count, name in counts if count)
    held = f"{len(node.levels)}{of} GPUs held" + (f": {parts}" if parts else "")
    return f"{harmless(cut(node.node))}: {held}"
