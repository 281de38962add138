"""What the line of a command names that works without a hub."""

import pytest

from gpuwaste.cli import main
from gpuwaste.cli.interrupts import Interrupted
from gpuwaste.cli.without_hub import without_hub
from gpuwaste.core.errors import AuthError, WireError
from gpuwaste.net.http import UnreachedError
from gpuwaste.net.munge_credentials import MungeUnreachedError


@pytest.mark.parametrize("error", [UnreachedError("no hub"), MungeUnreachedError("no munge")])
def test_a_command_without_hub_or_munge_names_what_works(error: WireError) -> None:
    """Each command that has a way without a hub names it, whatever its options; the others name none."""
    assert (
        without_hub(error, ["report", "--days", "3"]) == "; without a hub: gpuwaste analyze --sacct FILE, or --swf FILE"
    )
    assert "predict --model DIR" in without_hub(error, ["predict", "job.sh"])
    assert "--sacct FILE or --swf FILE" in without_hub(error, ["model", "train"])
    assert without_hub(error, ["model", "status"]) == ""
    assert without_hub(error, ["rules", "list"]) == ""


def test_a_hub_that_answers_is_no_missing_hub() -> None:
    """An answer that rejects the caller, or is another program's, names nothing else to run."""
    assert without_hub(AuthError("HTTP 403"), ["report"]) == ""
    assert without_hub(WireError("is this the hub?"), ["report"]) == ""


@pytest.mark.parametrize(
    ("stop", "line"),
    [
        (KeyboardInterrupt(), "gpuwaste: interrupted\n"),
        (Interrupted("2 of 9 cases are in x"), "gpuwaste: interrupted: 2 of 9 cases are in x\n"),
    ],
)
def test_an_interrupt_is_one_line(
    stop: KeyboardInterrupt, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C prints one line, with what is kept where a command keeps a part of its work."""

    def run(_words: list[str]) -> int:
        raise stop

    monkeypatch.setattr(main, "_run", run)
    assert main.main(["report"]) == 130
    assert capsys.readouterr().err == line
