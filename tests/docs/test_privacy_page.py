"""docs/explanation/privacy.md: its commands erase a user, and every place with names in the store is on it."""

import re
from contextlib import closing
from pathlib import Path

import pytest
from tests.unit.store.stored_people import fill, named

from gpuwaste.cli.main import main
from gpuwaste.core.clock import SystemClock
from gpuwaste.store.hub.data_inventory import INVENTORY, Retention
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.daemon_config import to_toml

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "explanation/privacy.md").read_text(encoding="utf-8")
HOW_TO = (DOCS / "how-to/erase.md").read_text(encoding="utf-8")
PLACES = {
    "jobs": "runs", "steps": "runs", "right_sizes": "right sizes", "machine_reservations": "the machine",
    **dict.fromkeys(("judged", "day_sums", "day_reasons"), "judged runs and sums of days"),
    "verdicts": "verdicts", "notices": "notices",
    "notice_opt_outs": "opt-outs", "actions": "actions", "rule_firings": "rules",
    **dict.fromkeys(("campaigns", "campaign_record"), "campaigns"),
    "appeals": "appeals", "keeps": "keeps", "rule_demotions": "demotions",
    "told_events": "[events](../how-to/events.md)", "dead_letters": "[events](../how-to/events.md)",
    "quarantine": "quarantine", "inlet_quarantine": "quarantine", "imports": "imported history",
    "pages": "imported history",
}  # fmt: skip
"""In which row of the page's table each table of the store is."""


@pytest.mark.parametrize("page", [PAGE, HOW_TO], ids=["privacy", "erase"])
def test_the_commands_erase_a_user(page: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's lines with gpuwaste, as they stand: no text of any table holds the name; others' rows are there."""
    with closing(HubStore.open(tmp_path / "hub.duckdb", SystemClock())) as store, store.writing() as db:
        for number, user in enumerate(("alice", "dave"), 1):
            fill(db, user, number)
    config = tmp_path / "gpuwaste.toml"
    config.write_text(to_toml({"hub": {"state_dir": str(tmp_path)}}), encoding="utf-8")
    lines = re.findall(r"^gpuwaste (hub erase .*)$", page, re.MULTILINE)
    assert len(lines) == 2
    for line in lines:
        assert main([*line.split(), "--config", str(config)]) == 0
    assert "erased user alice" in capsys.readouterr().out
    with closing(HubStore.open(tmp_path / "hub.duckdb", SystemClock())) as store, store.reader() as db:
        assert named(db, "alice") == {}
        assert named(db, "dave")


@pytest.mark.parametrize("table", [name for name, stored in INVENTORY.items() if stored.personal])
def test_every_table_with_names_is_on_the_page_with_its_retention(table: str) -> None:
    """A table that can name a person has a row on the page, and the row has the key or the word of its retention."""
    (row,) = re.findall(rf"^\| hub's store, {re.escape(PLACES[table])} \|.*$", PAGE, re.MULTILINE)
    kept = INVENTORY[table].kept
    opted = "until they opt in again"
    words = "[{}] {}".format(*kept.days.split(".")) if isinstance(kept, Retention) else kept.partition(";")[0]
    assert (opted if table == "notice_opt_outs" else words) in row.rpartition(" | ")[2]
