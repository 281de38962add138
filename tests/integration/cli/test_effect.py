"""`gpuwaste effect`: what it asks the hub, what it prints, and the check of campaign files."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.unit.act.campaigns.builders import GOOD
from tests.unit.show.effect_documents import effects

from gpuwaste.cli.main import main

SPLIT = {
    "document": "split", "schema": 1, "recorded": False, "generated": 1_809_302_400, "warning": "no effect",
    "before": {
        "start": 1, "end": 2, "held_gpu_h": 10.0, "idle_gpu_h": 5.0, "unknown_gpu_h": 0.0, "jobs": 3, "failed": 1,
        "timed_out": 0,
    },
}  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    with running_hub(tmp_path) as double:
        double.answers = {"/v1/effects": effects(), "/v1/effects/split": {**SPLIT, "after": SPLIT["before"]}}
        yield double


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    return ["--config", str(tmp_path / "gpuwaste.toml")]


def test_the_sentence_is_printed(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """All campaigns, or the named one; JSON is the document of the hub."""
    assert main(["effect", *config]) == 0
    assert hub.asked[-1] == ("/v1/effects", {})
    said = capsys.readouterr().out
    assert "1,240 GPU-hours saved" in " ".join(said.split())
    assert "bad.toml: what: empty" in said
    assert main(["effect", "gpus", "--json", *config]) == 0
    assert hub.asked[-1] == ("/v1/effects", {"campaign": "gpus"})
    assert json.loads(capsys.readouterr().out) == effects()
    assert main(["effect", "--csv", *config]) == 0
    assert capsys.readouterr().out.startswith("name,")


def test_before_and_after(hub: HubDouble, config: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The instant and the weeks are asked for, and the warning is printed first."""
    assert main(["effect", "--split", "@1750000000", "--weeks", "2", *config]) == 0
    assert hub.asked[-1] == ("/v1/effects/split", {"at": "1750000000", "weeks": "2"})
    said = capsys.readouterr().out
    assert said.index("no effect") < said.index("before")
    assert main(["effect", "--split", "@1750000000", "--csv", *config]) == 2
    assert "--json only" in capsys.readouterr().err
    assert main(["effect", "--split", "never", *config]) == 2


def test_files_are_checked_without_a_hub(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each good campaign is a line, each bad one a line on stderr; exit code 2 for a bad one, or without a key."""
    folder, rules = tmp_path / "campaigns.d", tmp_path / "rules.d"
    folder.mkdir()
    rules.mkdir()
    (rules / "near.toml").write_text('where = "job.gpus > 0"\n[[do]]\naction = "signal"\n')
    (rules / "node.toml").write_text((Path(__file__).parents[3] / "etc/rules.d/failing-node.toml").read_text())
    (folder / "good.toml").write_text(GOOD)
    config = tmp_path / "gpuwaste.toml"
    config.write_text(f'[common]\ncampaigns_dir = "{folder}"\ncampaign_key_file = "/k"\n[hub]\nrules_dir = "{rules}"\n')
    words = ["--config", str(config)]
    assert main(["effect", "--check", *words]) == 0
    said = "good: policy:gpus, digest, 2027-05-03 to 2027-07-25, by user: 50% held back\n"
    assert capsys.readouterr().out == said
    (folder / "rule.toml").write_text(
        GOOD.replace("2027", "2028").replace("2028-05-03", "2028-05-01").replace("2028-07-25", "2028-07-23")
        .replace('"policy:gpus", "digest"', '"rule:near", "rule:node", "rule:none"')
    )  # fmt: skip
    (folder / "bad.toml").write_bytes(b"\xff")
    assert main(["effect", "--check", *words]) == 2
    errors = capsys.readouterr().err
    for has in (
        "bad.toml: invalid TOML",
        "rule near: protects jobs",
        "rule node: is about a node",
        "rule none: is not",
    ):
        assert has in errors
    config.write_text(f'[common]\ncampaigns_dir = "{folder}"\n')
    assert main(["effect", "--check", str(folder / "good.toml"), *words]) == 2
    assert "campaign_key_file is empty" in capsys.readouterr().err
    assert main(["effect", "--check", str(tmp_path / "nowhere"), *words]) == 2


def test_no_campaigns_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty folder, and the folder that most sites do not have, are no error."""
    (tmp_path / "campaigns.d").mkdir()
    config = tmp_path / "gpuwaste.toml"
    config.write_text("")
    assert main(["effect", "--check", str(tmp_path / "campaigns.d"), "--config", str(config)]) == 0
    assert capsys.readouterr().out == "no campaigns: everybody is notified\n"
    if not os.path.exists("/etc/gpuwaste/campaigns.d"):  # noqa: PTH110 the installed folder
        assert main(["effect", "--check", "--config", str(config)]) == 0
