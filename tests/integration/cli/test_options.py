"""The options that commands share: one spelling, one meaning, one help text; and every former name still works."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub
from tests.unit.show.documents import report

from gpuwaste.cli.main import build_parser, main
from gpuwaste.cli.options import SHARED
from gpuwaste.cli.renamed import RENAMED

SPELT = {(name, bool(metavar)): names for names, metavar, _, _ in SHARED.values() for name in names}
TEXTS = {(names, bool(metavar)): (metavar, text) for names, metavar, text, _ in SHARED.values()}
FORMER = [
    ("evaluate --cluster gw", "--cluster", "clusters", "gw"),
    ("history import --again --cluster=gw", "--cluster", "clusters", "gw"),
    ("history import --again --jobs 3", "--jobs", "threads", 3),
    ("job 7 --fail-over 20", "--fail-over", "fail_above", 20.0),
    ("model status --cluster gw", "--cluster", "clusters", "gw"),
    ("notify list --fail-over=20", "--fail-over", "fail_above", 20.0),
    ("policy replay --cluster gw", "--cluster", "clusters", "gw"),
    ("policy replay --fail-over 20", "--fail-over", "fail_above", 20.0),
    ("policy replay --start now-1days", "--start", "start", "now-1days"),
    ("policy replay --end now-1days", "--end", "end", "now-1days"),
    ("predict --job 7", "--job", "jobs", "7"),
    ("predict --fail-over 20 job.sbatch", "--fail-over", "fail_above", 20.0),
    ("report --account physics", "--account", "accounts", "physics"),
    ("report --cluster", "--cluster", "allusers", True),
    ("report --cluster -S now-1days", "--cluster", "allusers", True),
    ("report --cluster gw", "--cluster", "clusters", "gw"),
    ("report --cluster -M gw", "--cluster", "clusters", "gw"),
    ("report --fail-over 20", "--fail-over", "fail_above", 20.0),
    ("simulate sweep study.toml --slurm", "--slurm", "as_job", True),
    ("top --fail-over 20", "--fail-over", "fail_above", 20.0),
    ("train --cluster gw", "--cluster", "clusters", "gw"),
    ("train --since now-1days", "--since", "starttime", "now-1days"),
    ("train --into models", "--into", "models_dir", Path("models")),
    ("verdicts --fail-over 20", "--fail-over", "fail_above", 20.0),
]
"""A command, a former name in it, and the option that gets its value."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    with running_hub(tmp_path) as double:
        double.answers = {"/v1/report": report()}
        yield double


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
    """An option takes a value in every command or in none; only --csv is a format and a file to read."""
    kinds: dict[str, set[bool]] = {}
    for _, action in declared(build_parser()):
        for name in action.option_strings:
            kinds.setdefault(name, set()).add(action.nargs != 0)
    assert [name for name, kind in kinds.items() if len(kind) > 1] == ["--csv"]


def test_no_command_declares_a_former_name() -> None:
    """Help, manual pages and completion have the current names only."""
    current = {name for names, *_ in SHARED.values() for name in names} | {"--into"}  # another option of `history`
    for prog, action in declared(build_parser()):
        assert not (set(action.option_strings) & set(RENAMED)) - current, prog


@pytest.mark.parametrize(("line", "name", "option", "value"), FORMER)
def test_every_former_name_works_with_one_line(
    capsys: pytest.CaptureFixture[str], line: str, name: str, option: str, value: object
) -> None:
    """The value arrives at the option of today, and stderr has one line that says its name."""
    words = line.split()
    options = build_parser(words[0]).parse_args(words)
    assert getattr(options, option) == value
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert f"{name} is now --" in said.err


def test_every_former_name_is_tried() -> None:
    """No entry of the table is untested."""
    assert {name for _, name, _, _ in FORMER} == set(RENAMED)


def test_several_former_names_are_one_line_and_output_is_unchanged(
    hub: HubDouble, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a script of an earlier release asks is asked, and its stdout is that of the current names."""
    config = ["--config", str(tmp_path / "gpuwaste.toml")]
    assert main(["report", "--cluster", "-M", "gw", "--fail-over=99", "--parsable", *config]) == 0
    before = capsys.readouterr()
    assert before.err == (
        "gpuwaste: note: --cluster is now --allusers; --fail-over is now --fail-above; the old spelling still works\n"
    )
    assert main(["report", "-a", "-M", "gw", "--fail-above=99", "-P", *config]) == 0
    assert capsys.readouterr() == (before.out, "")
    assert hub.asked[0][1]["cluster"] == hub.asked[1][1]["cluster"] == "gw"


def test_words_after_two_hyphens_are_not_ours(capsys: pytest.CaptureFixture[str]) -> None:
    """What sbatch is to read keeps its names."""
    options = build_parser("predict").parse_args(["predict", "--", "--job", "x", "job.sbatch"])
    assert options.words[-3:] == ["--job", "x", "job.sbatch"]
    assert capsys.readouterr().err == ""
