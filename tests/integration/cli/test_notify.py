"""`gpuwaste notify` against a hub: what is asked, what is printed, in which form."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub

from gpuwaste.cli.main import main

FRAME = {"schema": 1, "recorded": False, "generated": 1_763_000_000, "start": 1_762_000_000, "end": 1_763_000_000}
TOLD = {
    "user": "alice", "why": "", "jobs": 2, "gpu_s": 72_000.0,
    "wasted_s": 36_000.0, "exempt_s": 0.0, "coverage": 1.0, "address": "alice@example.org",
}  # fmt: skip
NOTICE = {
    "kind": "digest", "user": "=cmd|a\x1b", "period_start": 1, "period_end": 1_763_000_000, "dry": False,
    "status": "failed", "why": "", "detail": "550 no\x1b[2J such user", "address": "a@x", "at_utc": 5, "jobs": 1,
    "gpu_s": 7200.0, "wasted_s": 3600.0, "exempt_s": 0.0, "coverage": 0.9, "tries": 1, "next_utc": 0,
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    with running_hub(tmp_path) as double:
        yield double


def call(tmp_path: Path, *words: str) -> int:
    """Run the command."""
    return main(
        ["notify" if words[0] in {"on", "off"} else "digest", *words, "--config", str(tmp_path / "gpuwaste.toml")]
    )


def answer(hub: HubDouble, path: str, name: str, **more: Any) -> None:
    """Have the hub answer."""
    hub.answers[f"/v1/notices{path}"] = {"document": name, **FRAME, **more}


def test_off_and_on(hub: HubDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A user's wish travels as one flag, and the command says what counts now."""
    answer(hub, "/wish", "notice-wish", user="alice", mail=False)
    assert call(tmp_path, "off") == 0
    assert call(tmp_path, "on") == 0
    assert hub.sent == [{"mail": False}, {"mail": True}]
    off, on = capsys.readouterr().out.splitlines()
    assert off == "alice: digests and notices of time limits are no longer sent"
    assert on == "alice: digests and notices of time limits are sent again"


def test_preview_prints_the_mail(hub: HubDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The mail as it would go, or the reason why there is none."""
    answer(hub, "/preview", "notice-preview", **{**TOLD, "subject": "S", "text": "Dear alice,\n", "to": "a@x"})
    assert call(tmp_path, "preview", "--user", "alice") == 0
    assert hub.asked[-1] == ("/v1/notices/preview", {"user": "alice"})
    assert capsys.readouterr().out == "To: a@x\nSubject: S\n\nDear alice,\n"
    answer(hub, "/preview", "notice-preview", user="bob", why="little_waste", subject="", text="", to="")
    assert call(tmp_path, "preview") == 0
    assert capsys.readouterr().out == "bob would get no digest: less idle time than [notify] min_wasted_gpu_h\n"


def test_list_is_harmless_in_each_form(hub: HubDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names and a mail server's words reach neither the terminal nor a spreadsheet as commands."""
    answer(hub, "", "notices", notices=[NOTICE], dry_run=True)
    assert call(tmp_path, "list", "-S", "now-1days") == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "dry_run is true" in text
    assert call(tmp_path, "list", "--csv") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["user"], row["status"]) == ("'=cmd|a\\x1b", "failed")
    assert call(tmp_path, "list", "--parsable", "-n") == 0
    assert capsys.readouterr().out.startswith("digest|=cmd\\x7ca\\x1b|1|1763000000|0|failed|")
    answer(hub, "", "notices", notices=[], dry_run=False)
    assert call(tmp_path, "list") == 3


def test_replay_and_run(hub: HubDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whom it would have told, with sums by period and user; whom it tells now, and that a dry run is one."""
    user = {"user": "alice", "times": 3, "jobs": 9, "gpu_s": 7e4, "wasted_s": 3.6e4}
    period = {"start": 1, "end": 1_763_000_000, "told": [TOLD], "not_told": {"little_waste": 4}}
    answer(hub, "/replay", "notice-replay", periods=[period], users=[user])
    assert call(tmp_path, "replay", "-S", "now-28days") == 0
    text = capsys.readouterr().out
    assert "4 little waste" in text
    assert "19.4 10.0 alice" in text
    assert call(tmp_path, "replay", "-S", "now", "-E", "now-1days") == 2
    assert "is not before" in capsys.readouterr().err
    decided = {"dry_run": True, "news": True, "missing": "accounting", "told": [TOLD], "not_told": {}}
    answer(hub, "/run", "notice-run", **decided)
    assert call(tmp_path, "run", "--dry-run") == 0
    assert hub.sent[-1] == {"dry_run": True}
    shown = capsys.readouterr().out
    assert "alice@example.org" in shown
    assert "dry run: nothing is sent" in shown
    assert call(tmp_path, "run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["told"] == [TOLD]
