"""Output that cannot be written: a full disk, a pipe that nobody reads, a closed stream. One line, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwaste.cli.main import command_names
from gpuwaste.testing.patience import patient

GPUWASTE = Path(sys.executable).with_name("gpuwaste")
NO_SPACE = "gpuwaste: the output cannot be written: No space left on device: it is incomplete\n"
COMMANDS = [
    "help", "--version", "--help", "config show", "rules check", "simulate generate", "estimate probe torch",
    *(f"{name} --help" for name in command_names()),
]  # fmt: skip


def shell(command: str, *, unbuffered: bool) -> "subprocess.CompletedProcess[str]":
    """Run a line of bash, with Python's streams buffered or not."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    env |= {"PYTHONUNBUFFERED": "1"} if unbuffered else {}
    return subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=env, timeout=patient(120)
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_one_line(command: str) -> None:
    """`> /dev/full` ends every command with 1 and one line, its help too; with stderr full it ends with 1 as well."""
    done = shell(f"{GPUWASTE} {command} > /dev/full", unbuffered=False)
    assert (done.returncode, done.stderr) == (1, NO_SPACE)


@pytest.mark.long
@pytest.mark.parametrize("unbuffered", [True, False])
def test_streams_that_take_nothing(*, unbuffered: bool) -> None:
    """Full, closed or left alone by its reader, buffered or not: the exit code is right and nothing is a bug."""
    config = f"{GPUWASTE} config show"
    for line, code, said in (
        (f"{config} > /dev/full", 1, NO_SPACE),
        (f"{config} > /dev/full 2> /dev/full", 1, ""),
        (f"{GPUWASTE} nonsense 2> /dev/full", 2, ""),
        (f"{GPUWASTE} config check --config /none 2> /dev/full", 2, ""),
        (f"{config} >&-", 0, ""),
        (f"{config} >&- 2>&-", 0, ""),
        (f"{GPUWASTE} nonsense 2>&-", 2, ""),
        (f"({config}; echo $? >&2) | true", 0, "141\n"),
        (f"({GPUWASTE} report --help; echo $? >&2) | true", 0, "141\n"),
    ):
        done = shell(line, unbuffered=unbuffered)
        assert (done.returncode, done.stderr) == (code, said), line
