"""The map of nodes: in groups, with names, bounded, small, and harmless."""

import gzip
import re
from time import process_time
from xml.etree import ElementTree as ET

import pytest

from gpuwaste.ledger.now.node_groups import NodeOrder, node_groups, ordered
from gpuwaste.ledger.now.node_map import MOST_NAMED, MOST_NODES, node_map
from gpuwaste.ledger.now.now_types import NodeRow


def node(name: str, levels: str = "hi", gpus: int | None = 8, wasted_s: float = 0.0) -> NodeRow:
    return NodeRow(
        node=name, state="", gpus=gpus, reported=None, levels=levels, mean_pct=[], jobs=[], wasted_s=wasted_s
    )


def labels(names: list[str], order: NodeOrder = "name") -> list[str]:
    """Return the labels of the groups of nodes with these names."""
    return [group.label for group in node_groups([node(name) for name in names], order)]


def test_two_thousand_nodes_are_small() -> None:
    """Nodes of eight GPUs at drawn levels take two fifths of a page's 150 KB when packed."""
    text = node_map([node(f"gpu{n:04}", "hmliuhii"[n % 8 :] + "hmliuhii"[: n % 8]) for n in range(2000)])
    assert len(gzip.compress(text.encode(), 5)) < 60_000
    assert text.count('class="node"') == 2000


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([f"r{r}n{n}" for r in (2, 10) for n in range(3)], ["r2", "r10"]),
        ([f"rack-{r}.node-{n}" for r in (1, 2) for n in range(3)], ["rack-1", "rack-2"]),
        ([f"x1000c{c}s0b{n}n0" for c in (0, 1) for n in range(3)], ["x1000c0s0b0n0 to x1000c1s0b2n0"]),
        ([f"gpu{n}" for n in range(1, 31)], ["gpu1 to gpu20", "gpu21 to gpu30"]),
        ([f"gpu{n}.site2" for n in range(1, 31)], ["gpu1.site2 to gpu20.site2", "gpu21.site2 to gpu30.site2"]),
        (["dgx1", "dgx2", "login"], ["dgx1 to dgx2", "login"]),
    ],
)
def test_nodes_are_grouped_by_rack_or_by_name(names: list[str], found: list[str]) -> None:
    """A rack is what is before the second number, where it has several nodes; else nodes are in blocks by name."""
    assert labels(names) == found


def test_the_largest_waste_is_first_on_request() -> None:
    """Each block says what its nodes wasted; the blocks add up to the sum of all nodes."""
    nodes = [node(f"gpu{n}", wasted_s=3600.0 * n) for n in range(30)]
    assert [one.node for one in ordered(nodes, "waste")][:2] == ["gpu29", "gpu28"]
    assert [group.label for group in node_groups(nodes, "waste")] == ["390.0 GPU-hours", "45.0 GPU-hours"]


def test_a_node_says_what_it_has() -> None:
    """Held and free GPUs and the waste are in its title; what a GPU does is a shape in its level's path."""
    many = [node("gpu1", "ihu", 4, 5400.0), *(node(f"gpu{n}", "") for n in range(2, MOST_NAMED + 2))]
    root = ET.fromstring(node_map(many))  # noqa: S314 our own output
    assert root.findtext(".//rect/title") == "gpu1: 3 of 4 GPUs held: 1 high, 1 idle, 1 unknown; 1.50 GPU-hours wasted"
    shapes = {path.get("class"): path.get("d", "").count("M") for path in root.findall("figure/svg")[0].findall("path")}
    assert shapes == {"free": 1 + 19 * 8, "high": 1, "idle": 1, "unknown": 1}
    assert root.findall(".//text") == []


def test_a_few_nodes_have_their_names_and_letters() -> None:
    """Each node has a line with its name, and each held GPU the letter of its level."""
    root = ET.fromstring(node_map([node("gpu1", "ihu", 4), node("gpu2", "", 4)]))  # noqa: S314 our own output
    assert [name.text for name in root.iter("span")] == ["gpu1", "gpu2"]
    assert [text.text for text in root.iter("text")] == ["I", "H", "?"]


def test_two_thousand_nodes_are_as_large_as_fits_and_twice_as_many_smaller() -> None:
    """A GPU has at least 5 x 3 pixels at 2,000 nodes of eight; with 5,000 nodes it has fewer."""

    def height(count: int) -> int:
        return int(re.findall(r'<svg width="\d+" height="(\d+)"', node_map([node(f"gpu{n}") for n in range(count)]))[0])

    assert height(2000) >= 8 * 4
    assert height(5000) < height(2000) < height(300)


def test_strange_nodes_are_bounded_and_harmless() -> None:
    """A hostile name, unknown letters, a thousand GPUs and too many nodes; none at all is an empty picture."""
    text = node_map([node("</svg><script>\x1b\u202e" + "x" * 10_000, "zzz" * 1000, 10**9)] * (MOST_NODES + 5))
    ET.fromstring(text)  # noqa: S314 our own output
    assert "<script>" not in text
    assert "\u202e" not in text
    assert text.count('class="node"') == MOST_NODES
    ET.fromstring(node_map([]))  # noqa: S314 our own output


@pytest.mark.parametrize("name", ["a-" * 5000, "a1-" * 5000, "1" * 10_000, "a" * 10_000 + "1", "", "-._"])
def test_names_that_attack_the_patterns_cost_nothing(name: str) -> None:
    """The part of a name that is compared is bounded, so that no name takes long."""
    start = process_time()
    for order in ("name", "waste"):
        node_groups([node(name)] * 500, order)
    assert process_time() - start < 2
