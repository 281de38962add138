"""`gpuwaste doctor`: the roles of this host, its checks in parallel with one deadline, and --before-install."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from msgspec import to_builtins

from gpuwaste.cli import checks
from gpuwaste.cli.check import Check, DoctorDocument, Role, Status, Surroundings, is_there
from gpuwaste.core import groups
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, SlurmError
from gpuwaste.core.registry import ModuleRegistry
from gpuwaste.core.text import harmless
from gpuwaste.show.terminal_cells import one_line

_T = TypeVar("_T")
DEADLINE_S: Final = 20.0
NAGIOS_UNKNOWN: Final = 3
_UNIT_DIRS: Final = (Path("/usr/lib/systemd/system"), Path("/etc/systemd/system"), Path("/lib/systemd/system"))
_WORDS: Final = {Status.OK: "OK", Status.WARN: "WARNING", Status.FAIL: "CRITICAL"}
_RANK: Final = list(Status)  # from good to bad; its index is Nagios' exit code
_THREAD: Final = "check "  # the name of a check's thread begins with it
_NAMED: Final = 3  # lines that the one line of Nagios has room for
_INSTALL_DEADLINE_S: Final = 60.0
SCRIPT: Final = Path(str(resources.files("gpuwaste.cli"))) / "before-install.sh"
_NAME: Final = "before install"
_MOST_LINES: Final = 200
_SLURM: Final = "run scontrol ping on this host"


def roles_here(config: Config, unit_dirs: Sequence[Path] = _UNIT_DIRS) -> frozenset[Role]:
    """Return this host's roles: services that are installed, or have left their state or socket; else a login host."""
    traces = {
        Role.AGENT: (Path(config.agent.state_dir) / "agent.pid", Path(config.common.run_dir) / "agent.sock"),
        Role.HUB: (Path(config.hub.state_dir) / "hub.duckdb",),
        Role.ADVISOR: (Path(config.advisor.state_dir) / "verdicts.sqlite", Path(config.advisor.socket)),
    }
    found = {
        role
        for role, paths in traces.items()
        if any(map(is_there, (*paths, *(place / f"gpuwaste-{role}.service" for place in unit_dirs))))
    }
    return frozenset(found) or frozenset({Role.LOGIN})


def modules() -> list[Any]:
    """Return the checks in their order: the files of gpuwaste.cli.checks."""
    return list(ModuleRegistry[Any](checks, "NAME", "PLACE", "ROLES", "check").ordered_by("PLACE").values())


def run_checks(around: Surroundings, deadline_s: float = DEADLINE_S, used_s: float = 0.0) -> Iterator[Check]:
    """Run the checks of this host's roles all at once, and yield their lines in order.

    A check that meets an error, or has not finished by the deadline, is a failed line; no check delays the others. A
    failure with the cause of an earlier line only names that line: the cause is there once, with what to do.
    `used_s` is the time that the command has already used: loading it takes seconds on a slow host.
    """
    until_us = around.clock.mono_us() + int((deadline_s - used_s) * 1e6)
    jobs = [_Job(module, around) for module in modules() if module.ROLES & around.roles]
    failed: list[Check] = []
    for job in jobs:
        for check in job.lines(max(0.0, (until_us - around.clock.mono_us()) / 1e6), deadline_s):
            cause = next((one.name for one in failed if one.found in check.found), "")
            if cause and check.status is Status.FAIL:
                yield Check(check.name, Status.WARN, f"not checked: same cause as {cause}")
                continue
            if check.status is Status.FAIL:
                failed.append(check)
            yield check


def within(make: Callable[[], _T], limit_s: float) -> _T:
    """Return the result of a call within the command's deadline: a directory service may never answer.

    Raises GpuwasteError, and what the call raises.
    """
    found: list[_T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            found.append(make())
        except BaseException as error:  # noqa: BLE001 raised again by the thread that waits
            errors.append(error)

    thread = threading.Thread(target=call, name="surroundings", daemon=True)
    thread.start()
    thread.join(limit_s)
    if errors:
        raise errors[0]
    if not found:
        raise GpuwasteError(
            f"doctor: not finished within {limit_s:g} s: the configuration, users (getent passwd) or a file system do"
            " not answer, or this host is slow: use --timeout"
        )
    return found[0]


class _Job:
    """One check on a thread of its own, which is abandoned where it does not end."""

    def __init__(self, module: ModuleType, around: Surroundings) -> None:
        self._module = module
        self._around = around
        self._found: list[Check] = []
        self._thread = threading.Thread(target=self._run, name=f"{_THREAD}{module.NAME}", daemon=True)
        self._thread.start()

    def lines(self, wait_s: float, deadline_s: float) -> list[Check]:
        """Return the lines found within `wait_s`."""
        self._thread.join(wait_s)
        found = list(self._found)
        if self._thread.is_alive():
            words = f"not finished within {deadline_s:g} s"
            mend = "what it queries does not answer, or this host is slow: use --timeout"
            found.append(Check(self._module.NAME, Status.FAIL, words, mend))
        return found

    def _run(self) -> None:
        name = self._module.NAME
        try:
            for check in self._module.check(self._around):
                self._found.append(check)
        except SlurmError as error:
            self._found.append(Check(name, Status.FAIL, str(error), _SLURM))
        except GpuwasteError as error:
            self._found.append(Check(name, Status.FAIL, str(error)))
        except Exception as error:  # noqa: BLE001 a defect of one check must not hide the others
            self._found.append(Check(name, Status.FAIL, f"{type(error).__name__}: {error}", "a bug in gpuwaste"))


def left_behind() -> bool:
    """Return whether a check still runs that was not done by the deadline."""
    return any(thread.name.startswith(_THREAD) for thread in threading.enumerate())


def worst(found: Iterable[Check]) -> Status:
    """Return the worst status."""
    return max((check.status for check in found), key=_RANK.index, default=Status.OK)


def as_text(check: Check) -> str:
    """Return a check as one line."""
    mend = f": {check.mend}" if check.mend else ""
    return f"{check.status:<5}{check.name:<13}{one_line(f'{check.found}{mend}')}\n"


def as_json(host: str, roles: Iterable[Role], found: Sequence[Check]) -> str:
    """Return the checks as a document."""
    document = DoctorDocument(host=host, roles=sorted(roles), status=worst(found), checks=found)
    return json.dumps(to_builtins(document), indent=2) + "\n"


def as_nagios(found: Sequence[Check]) -> tuple[str, int]:
    """Return one line with figures, as monitoring plugins print it, and the exit code: 0, 1 or 2."""
    status = worst(found)
    bad = sorted((c for c in found if c.status is not Status.OK), key=lambda c: -_RANK.index(c.status))
    words = "; ".join(f"{c.name}: {one_line(c.found)}" for c in bad[:_NAMED])
    words += f"; {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    counts = {str(s): float(sum(c.status is s for c in found)) for s in Status}
    figures = counts | {label: value for c in found for label, value in c.figures.items()}
    perf = " ".join(f"'{label}'={value:.10g}" for label, value in figures.items())
    text = harmless(words or f"{len(found)} checks").replace("|", "/")
    return f"GPUWASTE {_WORDS[status]} - {text} | {perf}\n", _RANK.index(status)


def user_name() -> str:
    """Return the caller's name. Raises SlurmError where their uid has none."""
    if name := groups.user_name(os.geteuid()):
        return name
    raise SlurmError(f"uid {os.geteuid()} has no name on this host: add the user")


def host_checks(roles: Collection[Role], deadline_s: float = _INSTALL_DEADLINE_S) -> Iterator[Check]:
    """Run the script and yield its lines; without `roles` the checks of all. Raises GpuwasteError without a shell."""
    argv = ["/bin/sh", str(SCRIPT), "--fields", "--python", f"python{sys.version_info.major}.{sys.version_info.minor}"]
    for role in sorted(roles):
        argv += ["--role", role]
    try:
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True) as script:
            yield from _lines_of(script, deadline_s)
    except OSError as error:
        raise GpuwasteError(f"/bin/sh: {error.strerror}: run {SCRIPT} with another shell") from error


def _lines_of(script: subprocess.Popen[bytes], deadline_s: float) -> Iterator[Check]:
    """Yield what the script prints until its end; a fail instead of the lines that it did not reach."""
    late = False
    try:
        output, _ = script.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired as error:
        late, output = True, error.stdout or b""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(script.pid, signal.SIGKILL)
    yield from _parsed(output.decode("ascii", "replace"))
    if late:
        words = f"not finished within {deadline_s:g} s"
        yield Check(_NAME, Status.FAIL, words, "a command of this host does not answer")
    elif script.returncode not in {0, 1}:
        yield Check(_NAME, Status.FAIL, f"{SCRIPT} ended with {script.returncode}", "a bug in gpuwaste")


def _parsed(text: str) -> Iterator[Check]:
    for line in text.splitlines()[:_MOST_LINES]:
        status, _, rest = line.partition("\t")
        name, found, mend = (*rest.split("\t"), "", "", "")[:3]
        if status in set(Status):
            yield Check(name, Status(status), found, mend)
