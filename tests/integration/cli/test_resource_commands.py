"""Commands that resources declare, against a hub: what is asked of it, what is printed, which exit code."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub

from gpuwaste.cli.main import main
from gpuwaste.cli.resource_commands import resource_commands
from gpuwaste.ledger.now.now_types import NowAges, NowDocument, NowTotals

ACTIONS = {"document": "actions", "schema": 1, "generated": 5, "stopped": None, "actor": "", "actions": []}
INLETS = {
    "document": "inlets",
    "schema": 1,
    "generated": 5,
    "inlets": [],
    "quarantine": [{"at": 5, "inlet": "site", "kind": "x", "id": "1", "reason": "no such kind", "raw": ""}],
}
OUTLETS = {"document": "outlets", "schema": 1, "generated": 5, "outlets": [], "refused": []}
COUNTS = dict.fromkeys(NowTotals.__struct_fields__, 0)
TOTALS = NowTotals(**COUNTS | {"gpus": 8, "held": 4, "idle": 1})
NOW = NowDocument(
    recorded=False,
    generated=5,
    totals=TOTALS,
    ages=NowAges(**dict.fromkeys(NowAges.__struct_fields__, 5)),
    idle=[],
    idle_left_out=0,
    silent=[],
    queue=[],
    nodes=[],
    notes=[],
).to_json()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    with running_hub(tmp_path) as double:
        yield double


def call(tmp_path: Path, words: str) -> int:
    """Run the command."""
    return main([*words.split(), "--config", str(tmp_path / "gpuwaste.toml")])


def test_options_are_the_fields_that_were_given(hub: HubDouble, tmp_path: Path) -> None:
    """Only options that are given are sent; a window is UTC seconds with the second of -E in it; the hub sets now."""
    hub.answers["/v1/actions"] = ACTIONS
    assert call(tmp_path, "rules actions --status failed -u alice -S @1000000000") == 3
    path, asked = hub.asked[-1]
    assert path == "/v1/actions"
    assert asked == {"status": "failed", "user": "alice", "start": "1000000000", "limit": "1000"}
    call(tmp_path, "rules actions -S @1000000000 -E @1000000060")
    assert hub.asked[-1][1]["end"] == "1000000061"


@pytest.mark.usefixtures("hub")
def test_a_word_that_is_none_of_those_allowed_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A status that does not exist is wrong usage: the line names the option and those that exist."""
    with pytest.raises(SystemExit) as ended:
        call(tmp_path, "rules actions --status done")
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--status" in line
    assert "intended" in line


def test_an_empty_answer_has_its_exit_code_in_each_form(
    hub: HubDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing found is 3 whatever is printed: a sentence, an error where the command has one, or JSON."""
    hub.answers["/v1/actions"] = ACTIONS
    hub.answers["/v1/appeals"] = {"document": "appeals", "schema": 1, "generated": 5, "appeals": []}
    assert call(tmp_path, "rules actions") == 3
    assert "no actions in this window" in capsys.readouterr().out
    assert call(tmp_path, "appeal") == 3
    assert capsys.readouterr() == ("", "gpuwaste: no appeals found\n")
    assert call(tmp_path, "rules actions --json") == 3
    assert json.loads(capsys.readouterr().out) == ACTIONS


def test_the_status_of_events_is_outlets_inlets_and_quarantine(
    hub: HubDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One command prints what the hub sends, what it receives, and what it could not take."""
    hub.answers["/v1/inlets"] = INLETS
    hub.answers["/v1/outlets"] = OUTLETS
    assert call(tmp_path, "events status") == 0
    shown = capsys.readouterr().out
    assert "no outlets" in shown
    assert "no inlets" in shown
    assert "no such kind" in shown
    assert call(tmp_path, "events status --json") == 0
    assert json.loads(capsys.readouterr().out) == {"outlets": OUTLETS, "inlets": INLETS}


def test_a_share_above_the_limit_is_its_exit_code(hub: HubDouble, tmp_path: Path) -> None:
    """A quarter of the held GPUs is idle: above 20 percent, not above 30; the command has its own number of rows."""
    hub.answers["/v1/now"] = NOW
    assert call(tmp_path, "now") == 0
    assert hub.asked[-1] == ("/v1/now", {"limit": "20"})
    assert call(tmp_path, "now --fail-above 20") == 4
    assert call(tmp_path, "now --fail-above 30 --limit 5") == 0
    assert hub.asked[-1][1] == {"limit": "5"}


def test_every_declared_command_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command and action of each file of resources is found by the program, and says what it does."""
    found: list[Any] = [
        (name, reading.command) for name, command in resource_commands().items() for reading in command.readings
    ]
    assert len(found) >= 6
    for name, command in found:
        if name in {"actions", "appeals", "keeps"}:  # with a text of its own: gpuwaste rules actions, keep, appeal
            continue
        with pytest.raises(SystemExit) as ended:
            main([name, *([command.action] if command.action else []), "--help"])
        assert ended.value.code == 0
        assert (command.about or "options:") in " ".join(capsys.readouterr().out.replace(".", "").split()).replace(
            command.about[:1].upper() + command.about[1:], command.about
        )
