"""Token files are refused unless they are closed and exact; changes are seen without a restart."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import AuthError, ConfigError, RetryableWireError
from gpuwaste.net.request_signing import Caller
from gpuwaste.net.tokens import TokenChecker, TokenIssuer, read_token, read_tokens

ONE, TWO = "one-" * 8, "two-" * 8


def closed(path: Path, text: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def test_lines_name_their_tokens(tmp_path: Path) -> None:
    """Comments and blank lines are skipped; a name may have two tokens while one replaces the other."""
    path = closed(tmp_path / "t", f"# nodes\n\ngpu1 {ONE}\n  gpu1   {TWO}\n")
    assert read_tokens(path) == {ONE: "gpu1", TWO: "gpu1"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("gpu1\n", "line 1"),
        (f"\ngpu1 {ONE} x\n", "line 2"),
        ("gpu1 short\n", "line 1"),
        ("gpu1 " + "ü" * 20, "charact"),
    ],
)
def test_a_bad_line_is_named_without_its_token(tmp_path: Path, text: str, words: str) -> None:
    """The error names file and line, and never prints what may be a secret."""
    with pytest.raises(ConfigError, match=words) as caught:
        read_tokens(closed(tmp_path / "t", text))
    assert ONE not in str(caught.value)
    assert "short" not in str(caught.value)


def test_one_token_for_two_names_is_refused(tmp_path: Path) -> None:
    """Such a token would prove nothing."""
    with pytest.raises(ConfigError, match="gpu2 has the same token as gpu1"):
        read_tokens(closed(tmp_path / "t", f"gpu1 {ONE}\ngpu2 {ONE}\n"))


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o644])
def test_a_file_open_to_everybody_is_refused(tmp_path: Path, mode: int) -> None:
    """A token that others can read or change is none."""
    path = closed(tmp_path / "t", ONE)
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod o="):
        TokenIssuer(path)


@pytest.mark.parametrize("text", ["", "\n", f"{ONE} {TWO}", "short", "two words of it"])
def test_a_clients_file_holds_one_token(tmp_path: Path, text: str) -> None:
    """Anything else is refused with the file's name."""
    with pytest.raises(ConfigError, match="one token"):
        read_token(closed(tmp_path / "t", text))


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(ConfigError, match="nowhere"):
        TokenChecker(tmp_path / "nowhere")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    """A new token is known at once and an old one no longer; a broken file refuses for the time being."""
    path = closed(tmp_path / "t", f"gpu1 {ONE}\n")
    checker = TokenChecker(path)
    assert checker.check(ONE, "") == Caller(None, "", "token", "gpu1")
    path.write_text(f"# new\ngpu1 {TWO}\n")
    assert checker.check(TWO, "").name == "gpu1"
    with pytest.raises(AuthError):
        checker.check(ONE, "")
    path.write_text("broken")
    with pytest.raises(RetryableWireError, match="line 1"):
        checker.check(TWO, "")


def test_no_acknowledgement_without_a_token(tmp_path: Path) -> None:
    """A caller whose token is gone gets no signature."""
    checker = TokenChecker(closed(tmp_path / "t", f"gpu1 {ONE}\n"))
    with pytest.raises(AuthError, match="gpu9"):
        checker.issue_ack(Caller(None, "", "token", "gpu9"), "digest")
