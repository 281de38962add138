"""The Grafana boards: importable anywhere, in Grafana's own model, and asking only for what is served."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from tests.integration.etc.promql import faults
from tests.integration.etc.test_rules import known

ROOT = Path(__file__).parents[3]
BOARDS = sorted((ROOT / "etc" / "grafana").glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def targets(board: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (panel's title, target) of every query."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target


def test_there_are_the_two_boards() -> None:
    """One for the cluster's waste and one for a node, with names of their own."""
    boards = [load(path) for path in BOARDS]
    assert [path.name for path in BOARDS] == ["gpuwaste-cluster.json", "gpuwaste-node.json"]
    assert len({board["uid"] for board in boards}) == len({board["title"] for board in boards}) == len(boards)


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_board_is_a_dashboard_of_grafana(path: Path) -> None:
    """Read and written by Grafana's own model nothing of it is lost: no key is unknown there."""
    board = load(path)
    again = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(board)))
    assert lost(board, again) == []


def lost(before: Any, after: Any, where: str = "") -> list[str]:
    """Return the places at which something of `before` is not in `after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [place for key, value in before.items() for place in lost(value, after.get(key), f"{where}.{key}")]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [place for number, pair in enumerate(pairs) for place in lost(*pair, f"{where}[{number}]")]
    return [] if before == after else [where]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_panels_can_be_told_apart_and_do_not_overlap(path: Path) -> None:
    """Each panel has an id of its own, a title, and a place on the grid of 24 columns that no other has."""
    panels = load(path)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        assert panel["title"]
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert cells
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or (panel["description"] and panel["targets"])


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_board_can_be_imported_anywhere(path: Path) -> None:
    """Every panel and query asks the data source that the reader chooses, and no variable is used that is not there."""
    board = load(path)
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["datasource"]["query"] == "prometheus"
    assert "id" not in board
    for panel in board["panels"]:
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for title, target in targets(board):
        assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, title
        for name in variables:
            target["expr"] = target["expr"].replace(f"${name}", "")
        assert "$" not in target["expr"], title


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_a_board_asks_only_for_what_is_served(path: Path) -> None:
    """Each metric exists in an exporter or a recording rule, with the labels that it is chosen and named by."""
    series = known()
    for title, target in targets(load(path)):
        assert faults(target["expr"], series) == [], title


def test_a_key_that_grafana_does_not_know_would_be_found() -> None:
    """The comparison with Grafana's model tells an unknown key at any depth."""
    board = load(BOARDS[0])
    board["panels"][1]["tittle"] = "x"
    again = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(board)))
    assert lost(board, again) == [".panels[1].tittle"]


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_no_board_shows_a_user(path: Path) -> None:
    """No query or label of a board is by user."""
    assert not [title for title, target in targets(load(path)) if "user" in target["expr"]]
