"""The example client of idleness against a real hub over TLS: only a fresh, verified yes is one."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.etc.idle_client import CLIENT, example_client, report, running_culled_hub
from tests.integration.hub.rig import Rig

TOKEN = "culler-token-0123456789"  # noqa: S105 of this test
Fetched = tuple[int, str, bytes]


@pytest.fixture
def culled_hub(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub with TLS on which job 7 idles on gpu1; user culler has a token and reads everything."""
    with running_culled_hub(tmp_path) as rig:
        yield rig


def an_asker(rig: Rig, token: str = "token") -> Any:  # noqa: S107 a file
    """Return a client with a token."""
    return example_client().IdleAsker(
        f"https://127.0.0.1:{rig.port}", token_file=str(rig.directory / token), ca=str(rig.directory / "cert.pem")
    )


def altered(asker: Any, change: Callable[[Fetched], Fetched]) -> Any:
    """Return the client with somebody on its way to the hub."""
    fetch = asker._fetch
    asker._fetch = lambda target, credential: change(fetch(target, credential))
    return asker


def test_a_yes_is_one_and_everything_else_is_not(culled_hub: Rig) -> None:
    """Before any report, for what works, is foreign or does not exist the client says: do not cull."""
    asker = an_asker(culled_hub)
    assert asker.job("7", for_s=1800) is None
    report(culled_hub)
    found = asker.job("7", for_s=1800)
    assert found is not None
    assert found.usable()
    assert found.as_of - found.since >= 1800
    assert [run["jobid"] for run in found.runs] == ["7"]
    assert asker.node("gpu1", for_s=1800) is not None
    assert (asker.job("7", for_s=7200), asker.job("8"), asker.job("99"), asker.node("gpu9")) == (None,) * 4
    assert (asker.job("../now"), asker.job(""), asker.node("gpu1/../gpu1")) == (None,) * 3
    assert an_asker(culled_hub, "alice").node("gpu1", for_s=1800) is None
    assert an_asker(culled_hub, "alice").job("7", for_s=1800) is not None


def test_no_yes_that_was_forged_altered_or_kept_is_believed(culled_hub: Rig) -> None:
    """Another body, another signature or none, an older answer, that to another job, and too late a one are refused."""
    report(culled_hub)
    older: list[Fetched] = []

    def kept(got: Fetched) -> Fetched:
        older.append(got)
        return got

    assert altered(an_asker(culled_hub), kept).job("7", for_s=1800) is not None
    ways: list[Callable[[Fetched], Fetched]] = [
        lambda _: older[0],
        lambda got: (got[0], "", got[2]),
        lambda got: (got[0], older[0][1], got[2]),
        lambda got: (got[0], got[1], got[2].replace(b'"name":"7"', b'"name":"8"')),
        lambda got: (got[0], got[1], got[2] + b" "),
        lambda got: (302, got[1], got[2]),
        lambda got: (got[0], got[1], b""),
        lambda got: (got[0], got[1], b"\xff" * 100),
    ]
    for change in ways:
        assert altered(an_asker(culled_hub), change).job("7", for_s=1800) is None
    assert altered(an_asker(culled_hub), lambda got: got).job("7", for_s=1800) is not None
    busy = altered(
        an_asker(culled_hub), lambda got: (got[0], got[1], got[2].replace(b'"answer":"no"', b'"answer":"yes"'))
    )
    assert busy.job("8", for_s=1800) is None


def test_an_answer_ends(culled_hub: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A yes is not usable a minute after the request was sent, however long the answer took."""
    report(culled_hub)
    found = an_asker(culled_hub).job("7", for_s=1800)
    later = found.good_until + 0.001
    monkeypatch.setattr(example_client().time, "monotonic", lambda: later)
    assert not found.usable()


def test_without_the_hub_or_its_certificate_nothing_is_culled(culled_hub: Rig, tmp_path: Path) -> None:
    """A hub that is down, another certificate, a token that is missing, or one in clear text."""
    client, port = example_client(), culled_hub.port
    report(culled_hub)
    token = str(tmp_path / "token")
    assert client.IdleAsker(f"https://127.0.0.1:{port}", token_file=token).job("7", for_s=1800) is None
    ca = str(tmp_path / "cert.pem")
    assert client.IdleAsker("https://127.0.0.1:1", token_file=token, ca=ca).job("7") is None
    assert client.IdleAsker(f"https://127.0.0.1:{port}", token_file=str(tmp_path / "none"), ca=ca).job("7") is None
    with pytest.raises(ValueError, match="clear text"):
        client.IdleAsker(f"http://127.0.0.1:{port}", token_file=token)


def test_as_a_command_its_exit_code_is_0_only_for_a_yes(culled_hub: Rig, tmp_path: Path) -> None:
    """A shell script can write: gpuwaste_idle.py URL --job 7 && scancel 7."""
    argv = [sys.executable, str(CLIENT), f"https://127.0.0.1:{culled_hub.port}", "--ca", str(tmp_path / "cert.pem")]
    argv += ["--token-file", str(tmp_path / "token"), "--for", "1800", "--job", "7"]
    assert subprocess.run(argv, check=False, capture_output=True).returncode == 1
    report(culled_hub)
    assert subprocess.run(argv, check=False, capture_output=True).returncode == 0
