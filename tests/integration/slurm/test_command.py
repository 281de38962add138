"""Commands are bounded in time and output and leave nothing behind."""

import os
import signal
import sys
from pathlib import Path

import pytest

from gpuwaste.slurm.clients.command import CommandError, check, run_command, stream_lines
from gpuwaste.testing.cluster_process import wait_until

ENV = {"PATH": os.environ["PATH"]}


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_returns_code_and_both_outputs() -> None:
    """A command that ends badly is the caller's to judge."""
    output = run_command(
        python("import sys; print('out'); print('a\\nb', file=sys.stderr); sys.exit(3)"), ENV, 20, 1000
    )
    assert (output.code, output.stdout, output.stderr) == (3, b"out\n", b"a\nb\n")
    with pytest.raises(CommandError, match=r"exit code 3: b$") as caught:
        check(["scontrol", "show"], output)
    assert (caught.value.code, caught.value.stderr) == (3, "b")


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    """The whole process group goes, and no zombie is left."""
    pids = tmp_path / "pids"
    code = f"""
import os, time, pathlib
child = os.fork()
if child: pathlib.Path({str(pids)!r}).write_text(f"{{os.getpid()}} {{child}}")
time.sleep(600)
"""
    with pytest.raises(CommandError, match="no answer after 2 s"):
        run_command(python(code), ENV, 2, 1000)
    leader, child = map(int, pids.read_text().split())
    with pytest.raises(ChildProcessError):
        os.waitpid(leader, os.WNOHANG)
    wait_until(lambda: _ended(child), 60, "the child to end")


def _ended(pid: int) -> bool:
    """Tell whether a process is gone; an orphan may stay a zombie until its new parent looks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_output_is_bounded() -> None:
    """A command that prints for ever is stopped."""
    with pytest.raises(CommandError, match="more than 1000 bytes"):
        run_command(python("while True: print('x' * 100)"), ENV, 20, 1000)


def test_a_missing_command_is_said() -> None:
    """The error names it and where to look."""
    with pytest.raises(CommandError, match=r"no-such-command: cannot be started.*PATH"):
        run_command(["no-such-command"], ENV, 5, 1000)


def test_lines_stream_and_a_bad_end_is_told_after_them() -> None:
    """What came is handed on; the exit code still counts."""
    lines = stream_lines(python("import sys; print('a'); print('b', end=''); sys.exit('broken')"), ENV, 20)
    assert [next(lines), next(lines)] == [b"a\n", b"b"]
    with pytest.raises(CommandError, match="exit code 1: broken"):
        next(lines)


def test_a_reader_that_gives_up_ends_the_command(tmp_path: Path) -> None:
    """Closing the iterator kills and reaps."""
    lines = stream_lines(python("import os, time; print(os.getpid(), flush=True); time.sleep(600)"), ENV, 20)
    pid = int(next(lines))
    lines.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
