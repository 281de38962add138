"""Help of the command: the overview in groups, examples, widths, and the answers to typing errors and old names."""

import argparse
import re

import pytest

from gpuwaste.cli.command_groups import GROUPS
from gpuwaste.cli.main import build_parser, command_names, load_command, main
from gpuwaste.cli.old_names import MOVED


def _actions(name: str) -> set[str]:
    """Return the actions of a command, from its parser."""
    parser = argparse.ArgumentParser()
    load_command(name).arguments(parser)
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {word for action in found for word in action.choices}


def _refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    return capsys.readouterr().err


def test_the_groups_name_every_command_and_action() -> None:
    """The groups of the overview have all that the parsers have, and nothing that does not exist."""
    entries = [entry for commands in GROUPS.values() for entry in commands.split("  ")]
    named: dict[str, set[str]] = {}
    for entry in entries:
        name, _, actions = entry.partition(" ")
        named.setdefault(name, set()).update(re.findall(r"[a-z-]+", actions))
    assert set(named) == set(command_names())
    for name in command_names():
        assert named[name] == _actions(name) - ({"probe"} if name == "estimate" else set()), name


@pytest.mark.parametrize("words", [[], ["help"], ["--help"], ["-h"]])
def test_the_command_alone_prints_the_groups(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command, and for help, the overview is printed and the exit code is 0."""
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert all(f"\n{heading} " in shown for heading in GROUPS)
    assert "gpuwaste help report" in shown


@pytest.mark.parametrize("width", ["40", "80", "200", "7", "100000", "x"])
def test_help_fits_the_terminal(
    width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Help is as wide as the terminal, within 40 to 200 columns; only an example may be longer."""
    monkeypatch.setenv("COLUMNS", width)
    columns = min(max(int(width), 40), 200) if width.isdecimal() else 80
    main([])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= columns
    with pytest.raises(SystemExit):
        main(["simulate", "run", "--help"])
    shown = capsys.readouterr().out.partition("\nexamples:")[0]
    assert max(len(line) for line in shown.splitlines() if " " in line.strip()) <= columns


def test_every_command_and_action_shows_its_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """`gpuwaste help COMMAND` ends with the examples of the command, each of which is a command that exists."""
    for name in command_names():
        with pytest.raises(SystemExit) as end:
            main(["help", name])
        assert end.value.code == 0
        shown = capsys.readouterr().out
        assert "\nexamples:\n" in shown, name
        for line, meaning in load_command(name).EXAMPLES:
            assert f"  {line}\n      {meaning}\n" in shown
            assert line.split()[1] in command_names()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["reprot"], "no command 'reprot': did you mean report?: see gpuwaste --help"),
        (["model", "premote", "x"], "no action of gpuwaste model 'premote': did you mean promote?"),
        (["report", "--jsn"], "unknown argument: --jsn: did you mean --json?: see gpuwaste report --help"),
        (["simulate", "run", "--shceduler", "easy"], "did you mean --scheduler?: see gpuwaste simulate run --help"),
        (["zzzz"], "no command 'zzzz': see gpuwaste --help"),
        (
            ["simulate", "what-if"],
            "arguments are required: CHANGES: see gpuwaste simulate what-if --help",
        ),
    ],
)
def test_a_typing_error_is_answered_with_what_was_meant(
    words: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong command, action or option is one line with the nearest name and the help of that very command."""
    said = _refused(words, capsys)
    assert answer in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_says_the_new_one(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that has moved ends with 2 and one line with its new name, which exists."""
    said = _refused([*old.split(), "x"], capsys)
    new = MOVED[old]
    assert f"gpuwaste {old} is now gpuwaste {new}" in said or f"gpuwaste {old.split(maxsplit=1)[0]} " in said
    if not new.startswith("--"):
        words = [word for word in new.split() if re.fullmatch(r"[a-z-]+", word) and not word.startswith("-")]
        parser = build_parser(words[0])
        assert words[0] in command_names()
        assert len(words) == 1 or words[1] in _actions(words[0])
        assert parser.prog == "gpuwaste"
