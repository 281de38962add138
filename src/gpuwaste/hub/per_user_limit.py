"""PerUserLimit: one user may have a few questions in work at a time, so that others do not wait."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from gpuwaste.core.refusal import TOO_MANY, Refusal
from gpuwaste.core.scope import Scope

MOST: Final = 8


class PerUserLimit:
    """Counts questions in work by user; for one event loop. Operators, staff and daemons are not counted."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._busy: Counter[str] = Counter()

    @contextlib.contextmanager
    def taken(self, scope: Scope) -> Iterator[None]:
        """Hold a turn of a caller's. Raises Refusal 429 where none is left."""
        user = scope.bounded_user
        if not user:
            yield
            return
        if self._busy[user] >= self._most:
            raise Refusal(TOO_MANY, f"{self._most} requests of this user are in progress: try again", retry_after=1)
        self._busy[user] += 1
        try:
            yield
        finally:
            self._busy[user] -= 1
            if not self._busy[user]:
                del self._busy[user]
