"""Runs one command: bounded in time and output, in its own process group, all of which is killed."""

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Final

from gpuwaste.core.errors import MAX_WORDS, SlurmError
from gpuwaste.core.text import decoded

_CHUNK_B: Final = 1 << 16
_STDERR_KEPT_B: Final = 1 << 20
_MAX_LINE_B: Final = 8 * 1024**2
_UNCONFIGURED: Final = "Could not establish a configuration source"  # Slurm's words without slurm.conf and slurmctld
_NO_CONF: Final = ": this host has no slurm.conf: use a host of the cluster, or set [common] slurm_conf"


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command that ended."""

    code: int
    stdout: bytes
    stderr: bytes


class CommandError(SlurmError):
    """A command that failed; `stderr` is its last line."""

    def __init__(self, message: str, *, code: int | None = None, stderr: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.stderr = stderr


def run_command(argv: Sequence[str], env: Mapping[str, str], timeout_s: float, max_output_b: int) -> Output:
    """Run to the end, whatever the exit code.

    Raises CommandError where the command cannot start, is not done after `timeout_s`, or prints over `max_output_b`.
    """
    with _running(argv, env) as (process, errors):
        chunks, size = [], 0
        deadline = time.monotonic() + timeout_s
        while chunk := _read(process, deadline, argv, timeout_s):
            size += len(chunk)
            if size > max_output_b:
                raise CommandError(f"{_shown(argv)}: more than {max_output_b} bytes of output; the command was stopped")
            chunks.append(chunk)
        return Output(_wait(process, deadline, argv, timeout_s), b"".join(chunks), _tail(errors))


def stream_lines(argv: Sequence[str], env: Mapping[str, str], timeout_s: float) -> Generator[bytes]:
    """Yield the output's lines with their ends; `timeout_s` bounds each wait for more.

    Raises CommandError as run_command does, and, after the last line, where the exit code is not 0.
    """
    with _running(argv, env) as (process, errors):
        rest = b""
        while chunk := _read(process, time.monotonic() + timeout_s, argv, timeout_s):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _MAX_LINE_B:
                raise CommandError(f"{_shown(argv)}: a line of more than {_MAX_LINE_B} bytes; the command was stopped")
            for line in lines:
                yield line + b"\n"
        if rest:
            yield rest
        check(argv, Output(_wait(process, time.monotonic() + timeout_s, argv, timeout_s), b"", _tail(errors)))


def check(argv: Sequence[str], output: Output) -> None:
    """Raise CommandError with the command, its exit code and its last line of stderr where the code is not 0."""
    if output.code == 0:
        return
    last = last_line(output.stderr)
    remedy = _NO_CONF if _UNCONFIGURED in last else ""
    raise CommandError(
        f"{_shown(argv)}: exit code {output.code}: {last or 'no message'}{remedy}", code=output.code, stderr=last
    )


def last_line(data: bytes) -> str:
    """Return the last line that is not empty, as printable text of bounded length."""
    lines = [line for line in decoded(data).splitlines() if line.strip()]
    return lines[-1].strip()[:MAX_WORDS] if lines else ""


def _shown(argv: Sequence[str]) -> str:
    text = " ".join(argv)
    return text if text.isprintable() and len(text) < MAX_WORDS else ascii(text[:MAX_WORDS])[1:-1]


@contextlib.contextmanager
def _running(argv: Sequence[str], env: Mapping[str, str]) -> Iterator[tuple["subprocess.Popen[bytes]", IO[bytes]]]:
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=env, start_new_session=True
            )
        except OSError as error:
            raise CommandError(f"{argv[0]}: cannot be started: {error.strerror}; is it on PATH?") from error
        try:
            yield process, errors
        finally:
            _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Kill what is left of the group and reap it, also when the reader stops early."""
    if process.returncode is None:  # not reaped yet, so the group's id cannot be another's
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


def _read(process: "subprocess.Popen[bytes]", deadline: float, argv: Sequence[str], timeout_s: float) -> bytes:
    assert process.stdout is not None  # noqa: S101 narrows the type: it was asked for
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(max(0.0, deadline - time.monotonic())):
            raise _late(argv, timeout_s)
    return os.read(process.stdout.fileno(), _CHUNK_B)


def _wait(process: "subprocess.Popen[bytes]", deadline: float, argv: Sequence[str], timeout_s: float) -> int:
    try:
        return process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise _late(argv, timeout_s) from error


def _late(argv: Sequence[str], timeout_s: float) -> CommandError:
    return CommandError(f"{_shown(argv)}: no answer after {timeout_s:g} s; the command was stopped")


def _tail(errors: IO[bytes]) -> bytes:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - _STDERR_KEPT_B))
    return errors.read()
