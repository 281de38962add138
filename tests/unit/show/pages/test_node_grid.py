"""The grid of nodes: bounded, small, and harmless."""

import gzip
from xml.etree import ElementTree as ET

from gpuwaste.ledger.level_charts import MOST_NODES, node_grid
from gpuwaste.ledger.now.now_types import NodeRow


def node(name: str, levels: str, gpus: int | None = 8) -> NodeRow:
    return NodeRow(node=name, state="", gpus=gpus, reported=None, levels=levels, mean_pct=[], jobs=[])


def test_two_thousand_nodes_are_small() -> None:
    """Nodes of eight GPUs at drawn levels take a fifth of a page's 150 KB when packed."""
    text = node_grid([node(f"gpu{n:04}", "hmliuhii"[n % 8 :] + "hmliuhii"[: n % 8]) for n in range(2000)])
    assert len(gzip.compress(text.encode(), 5)) < 60_000
    assert text.count('class="node"') == 2000


def test_a_node_says_what_it_has() -> None:
    """Held and free GPUs are counted in its title; what a GPU does is a shape in its level's path."""
    root = ET.fromstring(node_grid([node("gpu1", "ihu", 4)]))  # noqa: S314 our own output
    assert root.findtext("rect/title") == "gpu1: 3 of 4 GPUs held: 1 high, 1 idle, 1 unknown"
    shapes = {path.get("class"): path.get("d", "").count("M") for path in root.findall("path")}
    assert shapes == {"free": 1, "high": 1, "idle": 1, "unknown": 1}


def test_few_nodes_are_large_and_have_letters() -> None:
    """Each held GPU of a few nodes has its level's letter in a larger picture; those of many have none."""
    few = ET.fromstring(node_grid([node("gpu1", "ihu", 4), node("gpu2", "", 4)]))  # noqa: S314 our own output
    assert [text.text for text in few.findall("text")] == ["I", "H", "?"]
    assert (few.get("width"), few.get("viewBox", "").split()[2]) == ("80", "20")
    many = ET.fromstring(node_grid([node(f"gpu{n}", "ih") for n in range(60)]))  # noqa: S314 our own output
    assert many.findall("text") == []
    assert (many.get("width"), many.get("viewBox", "").split()[2]) == ("600", "600")


def test_strange_nodes_are_bounded_and_harmless() -> None:
    """A hostile name, unknown letters, a thousand GPUs and too many nodes; none at all is an empty picture."""
    text = node_grid([node("</svg><script>\x1b\u202e" + "x" * 10_000, "zzz" * 1000, 10**9)] * (MOST_NODES + 5))
    ET.fromstring(text)  # noqa: S314 our own output
    assert "<script>" not in text
    assert text.count('class="node"') == MOST_NODES
    ET.fromstring(node_grid([]))  # noqa: S314 our own output
