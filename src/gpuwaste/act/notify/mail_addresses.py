"""A user's mail address: from the site's file, from a command's output, from a pattern; in that order."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError, GpuwasteError

ADDRESS: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,253}[A-Za-z0-9])?")
# What a name may be made of before it becomes part of an address or a word of a command.
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_FOUND: Final = re.compile(rf"(?:^|[\s:,<;])({ADDRESS.pattern})(?=$|[\s:,>;])", re.MULTILINE)
_NOBODY: Final = "-"
_PLACE: Final = "{user}"
_COMMAND_S: Final = 10.0
_OUTPUT: Final = 65536
_NO_ADDRESS: Final = log_event.warning(
    "notice-address-unreadable: {path}: no address for {user!r}: expected USER ADDRESS, or USER -",
    "A line of `[notify] address_file`; that user gets no mail until it is fixed.",
)


class AddressError(GpuwasteError):
    """Addresses cannot be looked up now; a later try may work."""


class AddressBook:
    """Looks up addresses; an empty text means that the user has none. Each answer is cached until `refresh`."""

    def __init__(self, pattern: str = "", file: Path | None = None, command: Sequence[str] = ()) -> None:
        if pattern and not is_address(pattern.replace(_PLACE, "user")):
            raise ConfigError(f"[notify] address {pattern!r}: expected a pattern such as {_PLACE}@example.org")
        self._pattern = pattern
        self._file = file
        self._command = tuple(command)
        self._known: dict[str, str] = {}
        self._listed: dict[str, str] = {}

    def refresh(self) -> None:
        """Forget the answers and read the file again. Raises AddressError if it cannot be read."""
        self._known = {}
        self._listed = {} if self._file is None else _read(self._file)

    def address_of(self, user: str) -> str:
        """Return a user's address. Raises AddressError if the command does not work."""
        if not _USER.fullmatch(user):
            return ""
        if user not in self._known:
            self._known[user] = self._look(user)
        return self._known[user]

    def _look(self, user: str) -> str:
        listed = self._listed.get(user)
        if listed is not None:
            return "" if listed == _NOBODY else listed
        return (self._ask(user) if self._command else "") or self._pattern.replace(_PLACE, user)

    def _ask(self, user: str) -> str:
        """Return the first address that the command prints; a non-zero exit code means "unknown user"."""
        argv = [word.replace(_PLACE, user) for word in self._command]
        try:
            ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_S, check=False)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise AddressError(f"[notify] address_command {argv[0]} failed: {error}") from error
        if ran.returncode:
            return ""
        found = _FOUND.search(ran.stdout[:_OUTPUT].decode("utf-8", "replace"))
        return found[1] if found else ""


def is_address(text: str) -> bool:
    """Return whether a text is a plain address: one local part, one host, nothing that headers or SMTP interpret."""
    return ADDRESS.fullmatch(text) is not None and ".." not in text.rpartition("@")[2]


def read_names(path: Path) -> frozenset[str]:
    """Return the names of a file, one per line, # starts a comment. Raises AddressError if it cannot be read."""
    return frozenset(line.split()[0] for line in _lines(path))


def _read(path: Path) -> dict[str, str]:
    found = {}
    for line in _lines(path):
        user, _, address = line.partition(" ")
        address = address.strip()
        if address == _NOBODY or is_address(address):
            found[user] = address
        else:
            # No mail is sent to an invalid address.
            found[user] = _NOBODY
            _NO_ADDRESS.log(path=path, user=user[:64])
    return found


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise AddressError(f"{path}: cannot be read: {error.strerror}") from error
    stripped = (line.partition("#")[0].replace("\t", " ").strip() for line in text.split("\n"))
    return [line for line in stripped if line]
