"""`gpuwaste model trial`: what the hub compared last, as text and as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub

from gpuwaste.cli.main import main

pytestmark = [pytest.mark.sockets, pytest.mark.usefixtures("hub")]
EVIDENCE = {
    "target": "failure", "jobs": 1200, "users": 40, "positives": 300, "model_ap": 0.41, "other_ap": 0.43, "gain": 0.02,
    "low": 0.004, "high": 0.031, "better": 0.93, "model_brier": 0.14, "other_brier": None,
}  # fmt: skip
TRIAL = {
    "document": "model-trial", "generated": 1_700_000_000, "cluster": "gw", "renew": False, "decision": "enough",
    "champion": {"name": "old", "hash": "a" * 64, "created_utc": 1_690_000_000, "rows": 100},
    "challenger": {"name": "new", "hash": "b" * 64, "created_utc": 1_699_000_000, "rows": 120},
    "since": 1_699_100_000.5, "comparison": [EVIDENCE], "against_baseline": [], "rollback": "not worse", "changed": "",
    "error": "", "of_later": 1,
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    monkeypatch.setenv("TZ", "UTC")
    with running_hub(tmp_path) as double:
        double.answers["/v1/models/trial"] = TRIAL
        yield double


def trial(tmp_path: Path, *words: str) -> int:
    return main(["model", "trial", "--config", str(tmp_path / "gpuwaste.toml"), *words])


def test_both_models_stand_beside_each_other(
    hub: HubDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, figures with the interval, the share of draws, the rule's words, and that nothing is changed by rule."""
    assert trial(tmp_path) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "old (",
        "new (",
        "failure 1,200 40 0.410 0.430 +0.020 +0.004 to +0.031 93 %",
        "off ([models] renew)",
    ):
        assert words in text, text
    assert "promotion: enough" in text


def test_as_json_it_is_the_hub_s_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a later hub adds is left out."""
    assert trial(tmp_path, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["comparison"] == [EVIDENCE]
    assert "of_later" not in found
