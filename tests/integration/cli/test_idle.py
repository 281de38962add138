"""`gpuwaste idle` against a real hub over TLS: the answer in words, exit codes for scripts, a checked signature."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import running_hub
from tests.integration.etc.idle_client import report, running_culled_hub
from tests.integration.hub.rig import Rig

from gpuwaste.cli.main import main
from gpuwaste.hub.authentication import Identity
from gpuwaste.testing.daemon_config import to_toml


@pytest.fixture
def culled_hub(tmp_path: Path) -> Iterator[Rig]:
    with running_culled_hub(tmp_path) as rig:
        url, token = f"https://127.0.0.1:{rig.port}", str(tmp_path / "token")
        common = {"hub_url": url, "token_file": token, "hub_ca": str(tmp_path / "cert.pem")}
        (tmp_path / "gpuwaste.toml").write_text(to_toml({"common": common}))
        yield rig


def idle(folder: Path, *words: str) -> int:
    """Return the exit code of the command."""
    return main(["idle", *words, "--config", str(folder / "gpuwaste.toml")])


def test_only_a_yes_ends_with_0(culled_hub: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown is 6, no is 5, what is not found 3; a yes says from when to when, and that nothing is known after it."""
    assert idle(tmp_path, "7") == 6
    assert "not_reported" in capsys.readouterr().out
    report(culled_hub)
    assert idle(tmp_path, "7", "--for", "30m") == 0
    said = capsys.readouterr().out
    assert "YES" in said
    assert "nothing is known after it" in " ".join(said.split())
    assert idle(tmp_path, "7", "--for", "2h") == 5
    assert "short: the GPUs are idle, but not yet for for_s" in capsys.readouterr().out
    assert idle(tmp_path, "--node", "gpu1") == 0
    assert "GPUs" in capsys.readouterr().out
    assert idle(tmp_path, "99") == 3
    assert "job 99: not found" in capsys.readouterr().err
    assert idle(tmp_path, "7", "--max-age", "60s") == 6


def test_json_and_csv(culled_hub: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get the document, spreadsheets a row for each GPU."""
    report(culled_hub)
    assert idle(tmp_path, "7", "--json") == 0
    assert json.loads(capsys.readouterr().out)["answer"] == "yes"
    assert idle(tmp_path, "7", "--csv") == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("cluster,jobid,start,user,state,answer,node,gpu_uuid")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("7", "--node", "gpu1"),
        ("seven",),
        ("--node", ""),
        ("--node", "a/b"),
        ("--node", "n" * 300),
        ("7", "--for", "1 day"),
        ("7", "--max-age", "-1"),
    ],
)
def test_what_is_no_question_is_wrong_usage(words: tuple[str, ...], tmp_path: Path) -> None:
    """Neither a job nor a node, both, a name that is none, a duration that is none."""
    (tmp_path / "gpuwaste.toml").write_text("")
    try:
        code = idle(tmp_path, *words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2


def test_an_answer_that_is_signed_with_another_token_is_an_error(
    culled_hub: Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server in the hub's place that does not know the token cannot say yes."""
    report(culled_hub)
    (tmp_path / "token").write_text("alice-token-0123456789")
    checkers = culled_hub.hub.get(Identity).checkers
    sign = checkers["token"].issue_ack
    checkers["token"].issue_ack = lambda caller, digest: sign(caller, digest[::-1])  # type: ignore[method-assign]
    assert idle(tmp_path, "7", "--for", "30m") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "not signed with this node's token" in captured.err


def test_an_answer_to_another_question_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a socket, too, an answer with another nonce or name is no answer."""
    with running_hub(tmp_path) as hub:
        hub.answers["/v1/jobs/7/idleness"] = {
            "document": "idleness", "schema": 1, "recorded": False, "generated": 1, "about": "job", "name": "7",
            "cluster": "gw", "nonce": "old", "for_s": 60, "max_age_s": 60, "answer": "yes", "since": 1, "as_of": 61,
            "idle_s": 60, "valid_until": 61, "valid_s": 60, "reasons": [], "runs": [], "accounting_read": 1,
            "slurmctld_read": 1,
        }  # fmt: skip
        assert idle(tmp_path, "7") == 1
    assert "for another question" in capsys.readouterr().err
