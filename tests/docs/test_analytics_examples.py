"""The page of examples from public logs: below each command are the sentences that it prints today."""

import json
import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.public_data import public

from gpuwaste.cli.main import main

pytestmark = pytest.mark.long

PAGE = (Path(__file__).parents[2] / "docs" / "analytics-examples.md").read_text(encoding="utf-8")


def examples() -> Iterator[tuple[list[str], str]]:
    """Yield the words of each command that has sentences below it, and these as one text."""
    for command, quoted in re.findall(r"```sh\n(gpuwaste [^`]*?)\n```\n\n((?:> [^\n]*\n)+)", PAGE):
        text = " ".join(line.removeprefix("> ") for line in quoted.splitlines())
        yield shlex.split(command.replace("\\\n", " "))[1:], text


EXAMPLES = list(examples())


def test_the_page_has_examples() -> None:
    """Each section with a command has its sentences."""
    assert len(EXAMPLES) >= 8


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set the time zone of the page, whatever this host's is."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize("place", range(len(EXAMPLES)))
def test_the_sentences_are_those_of_the_command(place: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The command, with the log where it lies here, says what the page says in UTC, word for word."""
    words, text = EXAMPLES[place]
    told = [str(public(word.removeprefix("data/"))) if word.startswith("data/") else word for word in words]
    if "--html" in told:
        del told[told.index("--html") :]
    assert main([*told, "--json", "--config", "/dev/null"]) == 0
    assert " ".join(json.loads(capsys.readouterr().out)["narrative"]) == text
