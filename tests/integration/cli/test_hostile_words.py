"""Every argument and variable of every command with bytes that are no UTF-8, with nothing, and with a megabyte."""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.cli.hub_double import HubDouble, running_hub

from gpuwaste.cli.main import build_parser, main
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.patience import patient

NO_UTF8 = "\udcff\udcfe"  # as Python decodes the bytes ff fe of a command line
HOSTILE = {"no UTF-8": NO_UTF8, "empty": "", "a megabyte": "x" * (1 << 20), "digits": "9" * 5000, "a NUL": "a\0b"}
VARIABLES = (
    "TZ", "SLURM_CONF", "SBATCH_TIMELIMIT", "SBATCH_GPUS", "SBATCH_JOB_NAME", "SLURM_TIME_FORMAT", "COLUMNS", "TERM",
    "NO_COLOR", "LANG", "HOME", "NOTIFY_SOCKET", "WATCHDOG_USEC", "JOURNAL_STREAM",
)  # fmt: skip
_HARMLESS = "nothing"


def _cases() -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each command's words and the place among them where a value stands."""
    yield from _of(build_parser(), ())


def _of(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    needed = [_HARMLESS for action in actions if not action.option_strings and action.nargs is None and action.required]
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, sub in action.choices.items():
                yield from _of(sub, (*words, name))
        elif action.nargs == 0:
            continue
        elif action.option_strings:
            line = (*words, action.option_strings[-1], "", *needed)
            yield line, len(words) + 1
        else:
            yield (*words, ""), len(words)


CASES = [(line, place) for line, place in _cases() if "--config" not in line]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[HubDouble]:
    with running_hub(tmp_path) as double:
        yield double


@pytest.fixture
def config(tmp_path: Path, hub: HubDouble, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a configuration whose every place is below this test's own directory, the working directory."""
    monkeypatch.chdir(tmp_path)  # an empty path may be taken for it
    path = tmp_path / "gpuwaste.toml"
    places = {name: str(tmp_path / name) for name in ("models_dir", "run_dir")}
    slurm_conf = tmp_path / "slurm.conf"
    slurm_conf.write_text("this is no slurm.conf\n", encoding="ascii")
    common = {"hub_url": f"unix:{hub.server_address}", "slurm_conf": str(slurm_conf), "cluster": "gw", **places}
    sections = {
        "common": common,
        "hub": {"state_dir": str(tmp_path / "hub")},
        "advisor": {"policies_dir": str(tmp_path)},
    }
    path.write_text(to_toml(sections), encoding="utf-8")
    return path


def _run(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as exit_:
        return int(exit_.code or 0)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize(("line", "place"), CASES, ids=[" ".join(line) for line, _ in CASES])
def test_any_argument_is_answered_in_one_line(
    line: tuple[str, ...],
    place: int,
    kind: str,
    config: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Whatever the value of an argument, a command does its work or says in one line of a few words what is wrong."""
    words = [*line[:place], HOSTILE[kind], *line[place + 1 :]]
    code = _run([*words, "--config", str(config)])
    captured = capsys.readouterr()
    assert "defect" not in captured.err
    assert code in {0, 1, 2, 3, 4}
    assert len(captured.err) < 5200
    if code in {1, 2}:
        assert captured.err.count("gpuwaste: ") >= 1
        assert not captured.err.splitlines()[-1].startswith("Traceback")


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("command", [("report",), ("agent", "status"), ("hub", "backup", "x"), ("predict", "x")])
def test_any_path_of_the_configuration_is_answered_in_one_line(
    command: tuple[str, ...],
    kind: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A --config that no file can have is one line, whichever command reads it."""
    monkeypatch.chdir(tmp_path)
    assert _run([*command, "--config", HOSTILE[kind]]) in {1, 2}
    said = capsys.readouterr().err
    assert said.startswith("gpuwaste: ")
    assert "defect" not in said
    assert len(said) < 5200


@pytest.mark.parametrize("value", [b"\xff\xfe", b"", b"x" * 100_000])
@pytest.mark.parametrize("command", [("report", "-S", "now-1days"), ("predict", "script.sh"), ("--version",)])
def test_any_variable_is_answered_in_one_line(command: tuple[str, ...], value: bytes, config: Path) -> None:
    """Whatever the variables that Python, Slurm or a command look at hold, nothing is called a defect of gpuwaste."""
    script = config.parent / "script.sh"
    script.write_text("#!/bin/sh\nsrun a\n", encoding="ascii")
    extra = [] if command[0].startswith("-") else ["--config", str(config)]
    words = [str(script) if word == "script.sh" else word for word in command]
    environ = {name.encode(): value for name in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-m", "gpuwaste.cli", *words, *extra],
        env={**os.environb, **environ}, capture_output=True, check=False, timeout=patient(120), cwd=config.parent,
    )  # fmt: skip
    assert done.returncode in {0, 1, 2, 3}, done.stderr
    assert b"defect" not in done.stderr
    assert b"Traceback" not in done.stderr
    assert len(done.stderr) < 5200


def test_an_empty_path_is_not_this_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell variable that is not set gives an empty --models-dir: nothing of the working directory is pruned."""
    monkeypatch.chdir(tmp_path)
    for name in ("src", "home"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}", encoding="ascii")
    assert _run(["model", "prune", "--keep", "0", "--models-dir", ""]) == 2
    assert "an empty text: expected a path" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "src"]
