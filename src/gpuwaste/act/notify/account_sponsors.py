"""Who answers for an account: by the site's file, by a command's output, else the account's coordinators in Slurm.

Coordinators are known to the part that decides who may read what, which is above this room: it is a subclass here.
"""

import re
import subprocess
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from gpuwaste.act.notify.mail_addresses import AddressError
from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.site_files import WatchedFiles
from gpuwaste.core.typed_toml import parse_toml, read_data

MOST: Final = 10  # sponsors of an account that get a mail
_MAX_FILE_B: Final = 1 << 20
_MAX_ACCOUNTS: Final = 50_000
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
_PLACE: Final = "{account}"
_COMMAND_S: Final = 10.0
_OUTPUT: Final = 65536
_REFUSED: Final = log_event.error(
    "sponsor-file-refused: [notify] sponsor_file is not used: {error}",
    "Fix the file; the sponsors that were read before stay in use.",
)


class AccountCoordinators(Part):
    """No account has a coordinator."""

    @classmethod
    def part_of(cls, _: Parts) -> Self:
        """Return the part of a hub."""
        return cls()

    def coordinators(self, _cluster: str, _account: str) -> Collection[str]:
        """Return the users who coordinate an account of a cluster; may query Slurm. Raises nothing."""
        return ()


class SponsorBook:
    """Looks up sponsors; use it from one thread."""

    def __init__(
        self,
        coordinators: Callable[[str, str], Collection[str]],
        file: Path | None = None,
        command: Sequence[str] = (),
    ) -> None:
        """Raise ConfigError if the file cannot be used: a hub does not start with a file of no effect."""
        if command and not any(_PLACE in word for word in command[1:]):
            raise ConfigError(f"[notify] sponsor_command {command[0]!r:.60}: expected {_PLACE} in one of its arguments")
        self._coordinators = coordinators
        self._command = tuple(command)

        def read() -> Mapping[str, tuple[str, ...]]:
            return {} if file is None else read_sponsors(file)

        self._file = WatchedFiles(file, read, read(), lambda error: _REFUSED.log(error=error))

    def sponsors(self, cluster: str, account: str) -> list[str]:
        """Return the users who answer for an account, at most MOST. Raises AddressError if the command fails."""
        self._file.refresh()
        listed = self._file.content.get(account)
        if listed is None and self._command:
            listed = self._ask(account)
        found = self._coordinators(cluster, account) if listed is None else listed
        return sorted({user for user in found if _NAME.fullmatch(user)})[:MOST]

    def _ask(self, account: str) -> tuple[str, ...] | None:
        """Return the names that the command prints; None if it does not know the account: exit code not 0."""
        if not _NAME.fullmatch(account):
            return None
        argv = [word.replace(_PLACE, account) for word in self._command]
        try:
            ran = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_S, check=False)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise AddressError(f"[notify] sponsor_command {argv[0]} failed: {error}") from error
        if ran.returncode:
            return None
        return tuple(ran.stdout[:_OUTPUT].decode("utf-8", "replace").replace(",", " ").split())


def read_sponsors(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the sponsors of each account of a TOML file: ACCOUNT = "user", or a list. Raises ConfigError."""
    parsed = parse_toml(read_data(path, _MAX_FILE_B, "sponsors"), str(path))
    if len(parsed) > _MAX_ACCOUNTS:
        raise ConfigError(f"{path}: {len(parsed)} accounts, {_MAX_ACCOUNTS} at most")
    return {account: _users(users, f"{path}: {account:.64}") for account, users in parsed.items()}


def _users(value: Any, where: str) -> tuple[str, ...]:
    users = [value] if isinstance(value, str) else value
    if not isinstance(users, list) or not all(isinstance(one, str) and _NAME.fullmatch(one) for one in users):
        raise ConfigError(f'{where}: expected a user such as "carol", or a list of users; [] for nobody')
    if len(users) > MOST:
        raise ConfigError(f"{where}: {len(users)} users, {MOST} at most")
    return tuple(users)
