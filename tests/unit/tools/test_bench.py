"""`make bench`: a bench is one file, each is listed with what it measures, and pages name those that are there."""

import re
from itertools import chain
from pathlib import Path

import bench.__main__ as command
import pytest

_ROOT = Path(__file__).parents[3]
_NAMED = re.compile(r"make\s+bench\s+NAME=([a-z0-9-]+)")


def test_each_program_is_listed_with_what_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name every file that begins with "Figure: " is a line; it can be run."""
    assert command.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    files = [file for file in command.FOLDER.glob("*.py") if file.read_text().startswith('"""Figure: ')]
    assert len(files) == len(lines) > 40
    assert "  report" in {line[:8] for line in lines}
    assert all('if __name__ == "__main__":' in file.read_text() for file in files)


def test_an_unknown_name_says_where_the_names_are(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no file has ends with 2."""
    assert command.main(["agent-child"]) == 2
    assert "agent-child: no such bench; `make bench` lists them" in capsys.readouterr().err


def test_pages_and_comments_name_benches_that_are_there() -> None:
    """Each `make bench NAME=x` of docs, code and units is one of the list."""
    folders = ("docs", "src", "agent", "models", "etc", "bench")
    files = chain.from_iterable((_ROOT / folder).rglob("*") for folder in folders)
    texts = [file.read_text(encoding="utf-8") for file in files if file.suffix in {".md", ".py", ".service", ".toml"}]
    named = set(chain.from_iterable(_NAMED.findall(text) for text in texts))
    assert len(named) > 30
    assert named <= set(command.benches())
