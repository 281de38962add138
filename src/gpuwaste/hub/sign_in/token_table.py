"""Secrets that were given to users: bounded per user and in all, with a lifetime; only their SHA-256 is kept.

A hub keeps them in its memory; hubs of one lake keep them in PostgreSQL (lake_tokens).
"""

import hashlib
import re
import secrets
import threading
from dataclasses import dataclass
from typing import Final, Protocol

from gpuwaste.core.clock import Clock

_BYTES: Final = 32
_FORM: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_NO_TOKEN: Final = b""


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """How many tokens a user and all users may have, and their lifetime in seconds: total, and unused."""

    per_user: int
    in_all: int
    life_s: float
    idle_s: float


class Tokens(Protocol):
    """Users by token; for any thread. Each call but `close` raises StoreError where the tokens cannot be reached."""

    def count(self) -> int:
        """Return how many are kept; some may have expired since the last `give`."""

    def give(self, user: str) -> str:
        """Return a new token of a user."""

    def use(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it counts as used now."""

    def peek(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it counts as used no later than before."""

    def take(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it is good for nothing from now on."""

    def close(self) -> None:
        """Disconnect from the storage."""


def new_token() -> str:
    """Return a secret that nobody can guess."""
    return secrets.token_urlsafe(_BYTES)


def digest_of(token: str) -> bytes:
    """Return what is kept of a token, b"" for a text that cannot be one."""
    return hashlib.sha256(token.encode("ascii")).digest() if _FORM.fullmatch(token) else _NO_TOKEN


@dataclass(slots=True)
class _Given:
    user: str
    made_us: int
    used_us: int


class TokenTable:
    """Tokens in memory. The token that was unused for longest makes room for a new one."""

    def __init__(self, limits: TokenLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._given: dict[bytes, _Given] = {}  # in the order of their last use
        self._of_user: dict[str, dict[bytes, None]] = {}  # in the same order

    def count(self) -> int:
        """Return how many are kept; some may have expired since the last `give`."""
        return len(self._given)

    def give(self, user: str) -> str:
        """Return a new token of a user."""
        token, now = new_token(), self._clock.mono_us()
        with self._lock:
            self._make_room(user, now)
            self._keep(digest_of(token), _Given(user, now, now))
        return token

    def use(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it counts as used now."""
        return self._found(token, keep=True)

    def peek(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it counts as used no later than before."""
        with self._lock:
            found = self._given.get(digest_of(token))
            return found.user if found is not None and self._is_good(found, self._clock.mono_us()) else None

    def take(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it is good for nothing from now on."""
        return self._found(token, keep=False)

    def close(self) -> None:
        """Do nothing: they end with the process."""

    def _found(self, token: str, *, keep: bool) -> str | None:
        now, digest = self._clock.mono_us(), digest_of(token)
        with self._lock:
            found = self._drop(digest)
            if found is None or not self._is_good(found, now):
                return None
            if keep:
                found.used_us = now
                self._keep(digest, found)
            return found.user

    def _make_room(self, user: str, now: int) -> None:
        """Drop what was unused for too long, then the oldest of this user's and of all where there is no room."""
        while self._given and now - next(iter(self._given.values())).used_us >= self._limits.idle_s * 1e6:
            self._drop(next(iter(self._given)))
        own = self._of_user.get(user, {})
        if len(own) >= self._limits.per_user:
            self._drop(next(iter(own)))
        if len(self._given) >= self._limits.in_all:
            self._drop(next(iter(self._given)))

    def _keep(self, digest: bytes, given: _Given) -> None:
        self._given[digest] = given
        self._of_user.setdefault(given.user, {})[digest] = None

    def _drop(self, digest: bytes) -> _Given | None:
        given = self._given.pop(digest, None)
        if given is not None:
            own = self._of_user[given.user]
            del own[digest]
            if not own:
                del self._of_user[given.user]
        return given

    def _is_good(self, given: _Given, now: int) -> bool:
        limits = self._limits
        return now - given.made_us < limits.life_s * 1e6 and now - given.used_us < limits.idle_s * 1e6
