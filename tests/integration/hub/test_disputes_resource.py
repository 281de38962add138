"""What one file declares as a resource is there as /v1, page, forms, OpenAPI and command: disputes are one."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.cli.main import main
from gpuwaste.core.scope import Scope
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.dispute_service import Disputes
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import record

ALICE, BOB = 1001, 1002


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub where root is an operator, with a dispute of alice and one of bob."""
    with running_hub(tmp_path, FakeSlurm(levels={"root": "Operator"})) as rig:
        upsert_jobs(rig.store, [record(20, "alice"), record(21, "bob")])
        rig.hub.get(Disputes).say(Scope("alice"), "20", b"words=%3Dwarm")
        rig.hub.get(Disputes).say(Scope("bob"), "21", b"words=busy")
        yield rig


def command(hub: Rig, *words: str) -> int:
    """Run `gpuwaste disputes` as root, over the hub's socket."""
    file = hub.directory / "gpuwaste.toml"
    file.write_text(f'[common]\nhub_url = "unix:{hub.socket}"\n')
    return main(["disputes", *words, "--config", str(file)])


def test_users_see_their_own_and_operators_all(hub: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """/v1, the page and the command keep to what the caller may see; another user's are not found."""
    own = hub.get(ALICE, "/v1/disputes").json
    assert [(one["printed_id"], one["words"]) for one in own["disputes"]] == [("20", "=warm")]
    assert hub.get(ALICE, "/v1/disputes?user=bob").status == 404
    assert "=warm" in hub.page(ALICE, "/disputes").body.decode()
    assert "busy" not in hub.page(ALICE, "/disputes").body.decode()
    assert command(hub) == 0
    text = capsys.readouterr().out
    assert "busy" in text
    assert "=warm" in text


def test_each_form_has_the_same_rows(hub: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON and CSV come from the page's address and from the command; a formula stays text."""
    assert command(hub, "--json", "-u", "alice") == 0
    by_command = json.loads(capsys.readouterr().out)
    assert by_command["disputes"] == hub.page(ALICE, "/disputes.json").json["disputes"]
    assert command(hub, "--csv", "--limit", "1") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["printed_id"], row["words"]) == ("20", "'=warm")
    assert hub.page(ALICE, "/disputes.csv").body.decode().startswith("printed_id,user,at_utc,words,runs,recorded\n")


def test_bounds_are_refused_and_described(hub: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """What the question's fields allow is what OpenAPI says; nothing found is exit code 3."""
    assert hub.get(ALICE, "/v1/disputes?limit=0").status == 400
    described = hub.send("GET", "/openapi.json").json["paths"]["/v1/disputes"]["get"]
    (limit,) = [one["schema"] for one in described["parameters"] if one["name"] == "limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 1000, 100)
    assert command(hub, "-u", "carol") == 3
    assert "no disputes found" in capsys.readouterr().err
