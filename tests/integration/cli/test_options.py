"""The options that commands share: one spelling, one meaning, one help text."""

import argparse
from collections.abc import Iterator

import pytest

from gpuwaste.cli.main import build_parser
from gpuwaste.cli.options import SHARED

SPELT = {(name, bool(metavar)): names for names, metavar, _, _ in SHARED.values() for name in names}
TEXTS = {(names, bool(metavar)): (metavar, text) for names, metavar, text, _ in SHARED.values()}


def declared(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yield each option of a command and of its actions, with the command's name."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from declared(below)
        elif action.option_strings:
            yield parser.prog, action


def test_a_shared_option_is_the_same_in_every_command() -> None:
    """Whoever takes an option of the table has all its spellings, its metavar and its help, which may go on."""
    found = set()
    for prog, action in declared(build_parser()):
        for name in action.option_strings:
            key = (name, action.nargs != 0)
            if key not in SPELT:
                assert (name, action.nargs == 0) not in SPELT, (prog, name)
                continue
            metavar, text = TEXTS[SPELT[key], key[1]]
            assert tuple(action.option_strings) == SPELT[key], (prog, name)
            assert (action.metavar or "") == metavar, (prog, name)
            assert action.help is not None
            assert action.help.removeprefix(text)[:2] in {"", ": ", " ("}, (prog, name, action.help)
            found.add(SPELT[key])
    assert found == set(SPELT.values())


def test_no_two_options_share_a_spelling_and_differ_in_kind() -> None:
    """An option takes a value in every command or in none; whatever the command."""
    kinds: dict[str, set[bool]] = {}
    for _, action in declared(build_parser()):
        for name in action.option_strings:
            kinds.setdefault(name, set()).add(action.nargs != 0)
    assert [name for name, kind in kinds.items() if len(kind) > 1] == []


def test_words_after_two_hyphens_are_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """What sbatch is to read keeps its names."""
    options = build_parser("predict").parse_args(["predict", "--", "--job", "x", "job.sbatch"])
    assert options.words[-3:] == ["--job", "x", "job.sbatch"]
    assert capsys.readouterr().err == ""
