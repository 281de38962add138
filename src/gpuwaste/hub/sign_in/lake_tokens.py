"""LakeTokens: the tokens of all hubs of a lake, in PostgreSQL: whoever is signed in at one of them is at each.

Times are the database's own. A token is taken by who writes a name of theirs beside it first: one UPDATE decides.
"""

import secrets
from collections.abc import Callable
from typing import Final, TypeVar

from gpuwaste.core.errors import StoreError
from gpuwaste.hub.sign_in.token_table import TokenLimits, digest_of, new_token
from gpuwaste.store.lake_catalog import LakeCatalog
from gpuwaste.store.lake_extensions import quoted

_T = TypeVar("_T")
_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS gpuwaste_tokens (kind text, digest text, name text NOT NULL,"
    " made timestamptz NOT NULL DEFAULT now(), used timestamptz NOT NULL DEFAULT now(),"
    " taken_by text NOT NULL DEFAULT '', PRIMARY KEY (kind, digest))"
)
_GOOD: Final = "(taken_by = '' AND made > now() - interval '{life} s' AND used > now() - interval '{idle} s')"
_OF_KIND: Final = "gpuwaste_tokens WHERE kind = '{kind}'"
# What is good no more goes, then what was unused for longest, of this user's and of all where there is no room.
_GIVE: Final = (
    f"DELETE FROM {_OF_KIND} AND NOT {_GOOD};"  # noqa: S608 names and numbers of ours, and what is quoted
    f" DELETE FROM {_OF_KIND} AND digest IN (SELECT digest FROM {_OF_KIND} AND name = {{user}}"
    " ORDER BY used DESC OFFSET {per_user} - 1);"
    f" DELETE FROM {_OF_KIND} AND digest IN (SELECT digest FROM {_OF_KIND} ORDER BY used DESC OFFSET {{in_all}} - 1);"
    " INSERT INTO gpuwaste_tokens VALUES ('{kind}', '{digest}', {user}) ON CONFLICT DO NOTHING"
)
_FIND: Final = (
    f"SELECT name, used < now() - interval '{{seldom}} s' FROM {_OF_KIND} AND digest = '{{digest}}' AND {_GOOD}"  # noqa: S608
)
_USED: Final = "UPDATE gpuwaste_tokens SET used = now() WHERE kind = '{kind}' AND digest = '{digest}'"
_TAKE: Final = (
    f"UPDATE gpuwaste_tokens SET taken_by = '{{taker}}' WHERE kind = '{{kind}}'"  # noqa: S608
    f" AND digest = '{{digest}}' AND {_GOOD}"
)
_TAKEN: Final = f"SELECT name FROM {_OF_KIND} AND digest = '{{digest}}' AND taken_by = '{{taker}}'"  # noqa: S608
_DROP: Final = f"DELETE FROM {_OF_KIND} AND digest = '{{digest}}'"  # noqa: S608
_COUNT: Final = f"SELECT count(*) FROM {_OF_KIND}"  # noqa: S608
_SELDOM_S: Final = 60.0  # so seldom a use is written
_SELDOM_SHARE: Final = 0.1  # of the idle time, where that is short


def tokens_of(catalog: str) -> LakeCatalog:
    """Return where the hubs of a lake keep tokens; `catalog` is the database as libpq's keywords."""
    return LakeCatalog(catalog, "the sessions of the lake's hubs", (_CREATE,))


class LakeTokens:
    """Tokens of one kind in PostgreSQL. A call that fails is tried once more: a connection may have ended unnoticed."""

    def __init__(self, catalog: LakeCatalog, kind: str, limits: TokenLimits) -> None:
        """`kind` parts links from sessions: a word of letters."""
        self._catalog = catalog
        self._words = {
            "kind": kind,
            "life": limits.life_s,
            "idle": limits.idle_s,
            "per_user": limits.per_user,
            "in_all": limits.in_all,
            "seldom": min(_SELDOM_S, limits.idle_s * _SELDOM_SHARE),
        }

    def count(self) -> int:
        """Return how many are kept; some may have expired since the last `give`. Raises StoreError."""
        return int(_twice(lambda: self._catalog.ask(self._text(_COUNT)))[0][0])

    def give(self, user: str) -> str:
        """Return a new token of a user. Raises StoreError."""
        token = new_token()
        text = self._text(_GIVE, digest_of(token), user=quoted(user))
        _twice(lambda: self._catalog.tell(text))
        return token

    def use(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it counts as used now. Raises StoreError."""
        return self._found(token, prolong=True)

    def peek(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it is not prolonged. Raises StoreError."""
        return self._found(token, prolong=False)

    def take(self, token: str) -> str | None:
        """Return whose token this is, None for none that is good; it is good for nothing from now on.

        Raises StoreError: it may be used up all the same.
        """
        digest, taker = digest_of(token), secrets.token_hex(16)
        if not digest:
            return None
        _twice(lambda: self._catalog.tell(self._text(_TAKE, digest, taker=taker)))
        found = _twice(lambda: self._catalog.ask(self._text(_TAKEN, digest, taker=taker)))
        if not found:
            return None
        _twice(lambda: self._catalog.tell(self._text(_DROP, digest)))
        return str(found[0][0])

    def close(self) -> None:
        """Leave PostgreSQL."""
        self._catalog.close()

    def _found(self, token: str, *, prolong: bool) -> str | None:
        digest = digest_of(token)
        if not digest:
            return None
        found = _twice(lambda: self._catalog.ask(self._text(_FIND, digest)))
        if not found:
            return None
        name, seldom = found[0]
        if prolong and seldom:
            _twice(lambda: self._catalog.tell(self._text(_USED, digest)))
        return str(name)

    def _text(self, sql: str, digest: bytes = b"", **words: str) -> str:
        return sql.format(digest=digest.hex(), **self._words, **words)


def _twice(work: Callable[[], _T]) -> _T:
    try:
        return work()
    except StoreError:
        return work()
