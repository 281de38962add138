"""`gpuwaste doctor --before-install`: what before-install.sh finds on this host, as lines of the doctor."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator
from importlib import resources
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status
from gpuwaste.core.errors import GpuwasteError

DEADLINE_S: Final = 60.0
SCRIPT: Final = Path(str(resources.files("gpuwaste.cli"))) / "before-install.sh"
_NAME: Final = "before install"
_MOST_LINES: Final = 200


def host_checks(roles: Collection[Role], deadline_s: float = DEADLINE_S) -> Iterator[Check]:
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
    """Yield what the script prints until its end; a fail in the place of what it did not reach."""
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
        yield Check(_NAME, Status.FAIL, f"{SCRIPT} ended with {script.returncode}", "a defect of gpuwaste")


def _parsed(text: str) -> Iterator[Check]:
    for line in text.splitlines()[:_MOST_LINES]:
        status, _, rest = line.partition("\t")
        name, found, mend = (*rest.split("\t"), "", "", "")[:3]
        if status in set(Status):
            yield Check(name, Status(status), found, mend)
