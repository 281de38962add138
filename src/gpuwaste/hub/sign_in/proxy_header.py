"""ProxyHeader: the user whom a reverse proxy has signed in, by the uid of its process on the Unix socket alone."""

import pwd
import re
from collections.abc import Iterable
from typing import Final

from fastapi import Request

from gpuwaste.core.errors import ConfigError
from gpuwaste.hub.sign_in.rejection import HEADER, Rejection

_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}", re.ASCII)
_TAKEN: Final = frozenset({"authorization", "connection", "content-length", "cookie", "host", "origin"})


class ProxyHeader:
    """The header of `[web] proxy_header`, believed from the uids in `uids`."""

    def __init__(self, name: str, uids: frozenset[int]) -> None:
        """Take the header's name and who may send it. Raises ConfigError for what is no header of its own."""
        if not _NAME.fullmatch(name) or name.lower() in _TAKEN:
            raise ConfigError(f"[web] proxy_header {name!r}: expected a header of its own, such as X-Remote-User")
        self.uids = uids
        self._name = name.lower()

    def user(self, request: Request) -> str | None:
        """Return whom the proxy names, None without the header. Raises Rejection where it cannot be believed."""
        values = request.headers.getlist(self._name)
        if not values:
            return None
        if getattr(request.state, "peer_uid", None) not in self.uids:
            raise Rejection(HEADER, f"{self._name} is accepted from [web] proxy_users on the Unix socket only")
        if len(values) > 1 or not _USER.fullmatch(values[0]):
            raise Rejection(HEADER, f"{self._name}: expected one user name of letters, digits, ., _ and -")
        return values[0]


def uids_of(users: Iterable[str]) -> frozenset[int]:
    """Return the uids of `[web] proxy_users`. Raises ConfigError."""
    try:
        return frozenset(pwd.getpwnam(user).pw_uid for user in users)
    except KeyError as error:
        raise ConfigError(f"[web] proxy_users: this host has no such user: {error.args[0]}") from error
