"""The token's file is closed, its claims are read, and the token is never shown."""

import base64
import json
import time
from pathlib import Path

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.slurm.clients.rest_http import read_token


def jwt(**claims: object) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256"}, claims)]
    return b".".join([*parts, b"c2lnbmF0dXJl"]).decode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.touch(0o600)
    return path


def test_the_claims_give_the_user_and_the_end(file: Path) -> None:
    """As `scontrol token` prints it, or alone; slurmrestd before 23.11 needs the name in a header of its own."""
    word = jwt(sun="gpuwaste", exp=2_000_000_000)
    for text in (word, f"SLURM_JWT={word}\n"):
        file.write_text(text)
        token = read_token(file)
        assert dict(token.headers()) == {"X-SLURM-USER-TOKEN": word, "X-SLURM-USER-NAME": "gpuwaste"}
        assert (token.expires, token.expired) == (2_000_000_000, False)
        assert word not in repr(token)


def test_a_token_whose_time_is_over_is_known(file: Path) -> None:
    """By this host's clock."""
    file.write_text(jwt(sun="gpuwaste", exp=time.time() - 1))
    assert read_token(file).expired


@pytest.mark.parametrize("claims", [{}, {"sun": 5, "exp": "never"}, {"sun": "a\nb: c", "exp": True}])
def test_claims_that_say_nothing_are_left_to_slurmrestd(file: Path, claims: dict[str, object]) -> None:
    """A claim of another kind, or a name that would end a header, is not used."""
    file.write_text(jwt(**claims))
    token = read_token(file)
    assert (token.user, token.expires, token.expired) == ("", None, False)
    assert list(token.headers()) == ["X-SLURM-USER-TOKEN"]


@pytest.mark.parametrize("text", ["", "x", "a b", "secret", "a.b", "secret.secret.secret\nsecret.secret.secret"])
def test_a_file_without_a_token_is_said_without_its_text(file: Path, text: str) -> None:
    """The message names the file and the command that makes a token."""
    file.write_text(text)
    with pytest.raises(ConfigError, match="scontrol token") as caught:
        read_token(file)
    assert "secret" not in str(caught.value).replace(str(file), "")


def test_an_open_file_is_refused(file: Path) -> None:
    """A token that everybody can read is no secret."""
    file.write_text(jwt(sun="gpuwaste"))
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod o= "):
        read_token(file)


def test_no_file_and_no_text_are_said(file: Path) -> None:
    """One line each."""
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_token(file.with_name("none"))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="characters that are not allowed in a token"):
        read_token(file)
