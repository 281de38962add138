"""Drives plugins/job_submit/test/client and .../slurmctld: the client library and the plugin under sanitizers."""

import os
import pwd
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.patience import patient

PATIENT_US = 5_000_000  # a deadline that a busy machine keeps
SHORT_US = 200_000
ME = pwd.getpwuid(os.geteuid()).pw_name
LONG_AGO = 1_000_000_000


def write_config(directory: Path, **plugin: Any) -> Path:
    """Write a gpuwaste.toml whose advisor listens in `directory`, and return it."""
    values = {"deadline_us": PATIENT_US, "kill_switch": str(directory / "disable"), "advisor_user": ME, **plugin}
    path = directory / "gpuwaste.toml"
    new = directory / "gpuwaste.toml.new"
    new.write_text(to_toml({"plugin": values, "advisor": {"socket": str(directory / "advisor.sock")}}))
    new.replace(path)
    return path


def to_hex(text: bytes | str | None) -> str:
    """Return bytes as the programs take them."""
    data = text.encode() if isinstance(text, str) else text
    return data.hex() if data else "-"


def from_hex(text: str) -> bytes:
    """Return bytes as the programs print them."""
    return b"" if text == "-" else bytes.fromhex(text)


@dataclass(frozen=True)
class Asked:
    """What one question came to; `taken` is whether a reply was."""

    start: str
    taken: bool
    action: str
    code: int
    id: str
    as_of: int
    time_min: int
    message: str


class Program:
    """A harness program; every command is one line and has one answer. It must end without a sanitizer's word."""

    def __init__(self, argv: list[str], **env: str) -> None:
        values = {**os.environ, "TSAN_OPTIONS": "halt_on_error=1", **env}
        pipe = subprocess.PIPE
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed with the program
        self._process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=self._errors, text=True, errors="replace", env=values
        )
        self.log: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None and error is not None:
            self._process.kill()
        self.close()

    def close(self) -> None:
        """End the program and check that it ended well."""
        self._process.communicate(timeout=patient(120))
        if not self._errors.closed:
            self._errors.seek(0)
            self.log = self._errors.read().splitlines()
            self._errors.close()
        assert self._process.returncode in (0, -9), "\n".join(self.log)

    def say(self, *words: object) -> str:
        """Give one command and return its answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(" ".join(map(str, words)) + "\n")
            stdin.flush()
        except BrokenPipeError:
            pass
        answer = stdout.readline()
        if not answer:
            self.close()
            raise AssertionError("\n".join(["the program ended", *self.log]))
        return answer.strip()


class Client(Program):
    """The client library."""

    def __init__(self, folder: Path, *, threads: bool = False, **env: str) -> None:
        super().__init__([str(folder / "test" / ("client-threads" if threads else "client"))], **env)

    def ask(self, uid: int = 1000) -> Asked:
        """Ask with the members given so far."""
        start, taken, *reply = self.say("ask", uid).split()
        return Asked(start, taken == "taken", *_reply(reply))

    def parse(self, json: bytes) -> tuple[bool, Asked]:
        """Read a reply's JSON."""
        taken, *reply = self.say("parse", to_hex(json)).split()
        return taken == "taken", Asked("", taken == "taken", *_reply(reply))

    def totals(self) -> dict[str, int]:
        """Return the counters."""
        return {key: int(value) for key, value in _pairs(self.say("totals")).items()}

    def settings(self, path: Path) -> dict[str, str]:
        """Return what the reader makes of a file."""
        return _pairs(self.say("settings", path))

    def comment(self, old: str, verdict: str) -> str:
        """Return the admin_comment that is written over `old`."""
        return from_hex(self.say("comment", to_hex(old), verdict or "-")).decode()


def _reply(words: list[str]) -> tuple[str, int, str, int, int, str]:
    action, code, verdict, as_of, time_min, message = words
    verdict = "" if verdict == "-" else verdict
    return action, int(code), verdict, int(as_of), int(time_min), from_hex(message).decode()


def _pairs(line: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in line.split())


@dataclass(frozen=True)
class Called:
    """What the plugin returned and left in the descriptor."""

    code: int
    time_min: int
    admin_comment: str
    message: str


class Slurmctld(Program):
    """The plugin, loaded by a stand-in for slurmctld."""

    def __init__(self, folder: Path, config: Path) -> None:
        test = folder / "test"
        argv = [str(test / "slurmctld"), str(test / "job_submit_gpuwaste.so")]
        super().__init__(argv, GPUWASTE_CONFIG=str(config))

    def fill(self, members: Mapping[str, bytes | str | int]) -> None:
        """Set members of the descriptor."""
        for name, value in members.items():
            self.say("set", name, value if isinstance(value, int) else to_hex(value))

    def call(self, function: str, uid: int = 1000) -> Called:
        """Call job_submit ("submit") or job_modify ("modify")."""
        code, rest = self.say(function, uid).split(" ", 1)
        left = _pairs(rest)
        comment, message = (from_hex(left[key]).decode(errors="replace") for key in ("admin_comment", "message"))
        return Called(int(code), int(left["time_min"]), comment, message)
