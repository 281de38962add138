"""Run a command under the system calls that a unit allows: `python -m gpuwaste.testing.unit_filter UNIT COMMAND...`.

The unit's SystemCallFilter is put in force as systemd does it, through libseccomp, with the groups as the installed
systemd-analyze lists them; what is not allowed fails with EPERM. So is its MemoryDenyWriteExecute, also where a drop-in
(UNIT.d/*.conf) sets it. Both stay for the command and all that it starts.
"""

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KEY: Final = "SystemCallFilter="
_EXECUTE: Final = "MemoryDenyWriteExecute="
_PR_SET_MDWE, _REFUSE_EXEC_GAIN = 65, 1  # linux/prctl.h; since Linux 6.3


def allowed(unit: Path) -> set[str]:
    """Return the names of the system calls that a unit allows. Raises CalledProcessError."""
    calls = _group("@default")
    for line in unit.read_text(encoding="utf-8").splitlines():
        if line.startswith(_KEY):
            value = line.removeprefix(_KEY)
            named = _expanded(value.removeprefix("~").split())
            calls = calls - named if value.startswith("~") else calls | named
    return calls


def enforce(calls: Iterable[str]) -> None:
    """Allow this process these system calls alone. Raises OSError."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(_ERRNO | errno.EPERM))
    for call in sorted(calls):
        number = library.seccomp_syscall_resolve_name(call.encode())
        if number >= 0:
            library.seccomp_rule_add(context, _ALLOW, number, 0)
    code = library.seccomp_load(context)
    if code:
        raise OSError(-code, f"seccomp: {os.strerror(-code)}")


def denies_write_execute(unit: Path) -> bool:
    """Tell whether a unit with its drop-ins may execute no memory that it has written."""
    files = [unit, *sorted(Path(f"{unit}.d").glob("*.conf"))]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    values = [line.removeprefix(_EXECUTE) for line in lines if line.startswith(_EXECUTE)]
    return values[-1:] == ["yes"]


def deny_write_execute() -> None:
    """Let this process execute no memory that it has written. Raises OSError where Linux is older than 6.3."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_MDWE, _REFUSE_EXEC_GAIN, 0, 0, 0):
        code = ctypes.get_errno()
        raise OSError(code, f"prctl: {os.strerror(code)}")


def _expanded(words: Iterable[str]) -> set[str]:
    return set().union(*(_group(word) if word.startswith("@") else {word} for word in words))


def _group(name: str) -> set[str]:
    argv = ["systemd-analyze", "syscall-filter", "--no-pager", name]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    words = [line.strip() for line in text.splitlines()[1:]]
    return _expanded(word for word in words if word and not word.startswith("#"))


if __name__ == "__main__":
    calls = allowed(Path(sys.argv[1]))
    if denies_write_execute(Path(sys.argv[1])):
        deny_write_execute()
    enforce(calls)
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 the caller's command, as it is
