"""LakeTokens: the tokens of all hubs of a lake, in PostgreSQL: a user signed in at one hub is signed in at all.

Times are the database's own. A token is taken by the first one who writes a name of their own to its row: one UPDATE.
Half of a token is a code of the other half, by a key that the hubs share (RFC 2104): forged tokens are rejected without
a query to PostgreSQL. Reading the key there allows nobody to sign in: the table has only the SHA-256 of tokens.
"""

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final, TypeVar

from gpuwaste.core.errors import StoreError
from gpuwaste.hub.sign_in.token_table import TokenLimits, digest_of
from gpuwaste.store.duckdb_connection import quoted
from gpuwaste.store.lake_catalog import LakeCatalog

_T = TypeVar("_T")
_CREATE: Final = (
    "CREATE TABLE IF NOT EXISTS gpuwaste_tokens (kind text, digest text, name text NOT NULL,"
    " made timestamptz NOT NULL DEFAULT now(), used timestamptz NOT NULL DEFAULT now(),"
    " taken_by text NOT NULL DEFAULT '', PRIMARY KEY (kind, digest))"
)
_CREATE_KEY: Final = (
    "CREATE TABLE IF NOT EXISTS gpuwaste_token_key (one boolean PRIMARY KEY CHECK (one), key text NOT NULL)"
)
_MAKE_KEY: Final = "INSERT INTO gpuwaste_token_key VALUES (true, '{key}') ON CONFLICT DO NOTHING"
_KEY: Final = "SELECT key FROM gpuwaste_token_key"
_HALF_B: Final = 16
_GOOD: Final = "(taken_by = '' AND made > now() - interval '{life} s' AND used > now() - interval '{idle} s')"
_OF_KIND: Final = "gpuwaste_tokens WHERE kind = '{kind}'"
# Deletes expired tokens, then the longest unused ones, of this user and of all where there is no room.
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
_SELDOM_S: Final = 60.0  # how seldom a use is written
_SELDOM_SHARE: Final = 0.1  # of the idle time, where that is short


def tokens_of(catalog: str) -> LakeCatalog:
    """Return where the hubs of a lake keep tokens; `catalog` is the database as libpq's keywords."""
    make_key = _MAKE_KEY.format(key=secrets.token_hex(32))  # where no hub has made one
    return LakeCatalog(catalog, "the sessions of the lake's hubs", (_CREATE, _CREATE_KEY, make_key))


class LakeTokens:
    """Tokens of one kind in PostgreSQL. A call that fails is tried once more: a connection may have ended unnoticed."""

    def __init__(self, catalog: LakeCatalog, kind: str, limits: TokenLimits) -> None:
        """`kind` separates links from sessions: a word of letters."""
        self._catalog = catalog
        self._key = b""  # not known
        self._words: dict[str, Any] = {
            "kind": kind,
            "life": limits.life_s,
            "idle": limits.idle_s,
            "per_user": limits.per_user,
            "in_all": limits.in_all,
            "seldom": min(_SELDOM_S, limits.idle_s * _SELDOM_SHARE),
        }

    def count(self) -> int:
        """Return how many are kept; some may have expired since the last `give`. Raises StoreError."""
        return int(self._ask(self._text(_COUNT))[0][0])

    def give(self, user: str) -> str:
        """Return a new token of a user. Raises StoreError."""
        half = secrets.token_bytes(_HALF_B)
        token = urlsafe_b64encode(half + self._code(half)).decode().rstrip("=")
        text = self._text(_GIVE, digest_of(token), user=quoted(user))
        self._tell(text)
        return token

    def use(self, token: str) -> str | None:
        """Return the user of this token, None where it is invalid; it counts as used now. Raises StoreError."""
        return self._found(token, prolong=True)

    def peek(self, token: str) -> str | None:
        """Return the user of this token, None where it is invalid; it is not prolonged. Raises StoreError."""
        return self._found(token, prolong=False)

    def take(self, token: str) -> str | None:
        """Return the user of this token, None where it is invalid; it is invalid from now on.

        Raises StoreError: it may be used up all the same.
        """
        digest, taker = self._digest(token), secrets.token_hex(16)
        if not digest:
            return None
        self._tell(self._text(_TAKE, digest, taker=taker))
        found = self._ask(self._text(_TAKEN, digest, taker=taker))
        if not found:
            return None
        self._tell(self._text(_DROP, digest))
        return str(found[0][0])

    def close(self) -> None:
        """Disconnect from PostgreSQL."""
        self._catalog.close()

    def _found(self, token: str, *, prolong: bool) -> str | None:
        digest = self._digest(token)
        if not digest:
            return None
        found = self._ask(self._text(_FIND, digest))
        if not found:
            return None
        name, seldom = found[0]
        if prolong and seldom:
            self._tell(self._text(_USED, digest))
        return str(name)

    def _digest(self, token: str) -> bytes:
        """Return what is kept of a token, b"" for a text that no hub of the lake has made. Raises StoreError."""
        digest = digest_of(token)
        made = urlsafe_b64decode(f"{token}=") if digest else b""
        return digest if hmac.compare_digest(made[_HALF_B:], self._code(made[:_HALF_B])) else b""

    def _code(self, half: bytes) -> bytes:
        """Return the other half of a token. Raises StoreError."""
        self._key = self._key or bytes.fromhex(self._ask(_KEY)[0][0])
        return hmac.digest(self._key, self._words["kind"].encode() + half, "sha256")[:_HALF_B]

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        return self._twice(lambda: self._catalog.ask(query))

    def _tell(self, statement: str) -> None:
        self._twice(lambda: self._catalog.tell(statement))

    def _twice(self, work: Callable[[], _T]) -> _T:
        try:
            return work()
        except StoreError:
            self._key = b""  # the next connection may be to another database
            return work()

    def _text(self, sql: str, digest: bytes = b"", **words: str) -> str:
        return sql.format(digest=digest.hex(), **self._words, **words)
