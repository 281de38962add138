"""Token files: credentials for sites without munge. A token is a password: it needs TLS and a private file.

The hub's file has lines `NAME TOKEN` (NAME is the node or the user that the token identifies); a client's file holds
one token. Both are read again when they change, so a token can be replaced without a restart.
"""

import hashlib
import hmac
import re
import threading
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import AuthError, ConfigError
from gpuwaste.core.files import read_closed
from gpuwaste.core.site_files import WatchedFiles
from gpuwaste.net.request_signing import MAX_CREDENTIAL, Caller, RetryableAuthError

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]{16,256}=*")
_MAX_FILE: Final = 16 * 1024**2


def read_token(path: Path) -> str:
    """Return the one token in a client's file. Raises ConfigError."""
    words = read_closed(path, _MAX_FILE).split()
    if len(words) != 1 or not _TOKEN.fullmatch(words[0]):
        raise ConfigError(f"{path}: expected one token of 16 to 256 letters, digits and -._~+/")
    return words[0]


def read_tokens(path: Path) -> dict[str, str]:
    """Return name by token from lines `NAME TOKEN`; # starts a comment line. Raises ConfigError, naming no token."""
    tokens: dict[str, str] = {}
    for number, line in enumerate(read_closed(path, _MAX_FILE).splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or not _TOKEN.fullmatch(words[1]):  # noqa: PLR2004 a name and a token
            raise ConfigError(f"{path}, line {number}: expected NAME TOKEN, the token of 16 to 256 characters")
        if words[1] in tokens:
            raise ConfigError(f"{path}, line {number}: {words[0]} has the same token as {tokens[words[1]]}")
        tokens[words[1]] = words[0]
    return tokens


class TokenIssuer:
    """The client's side of a token."""

    secret = True

    def __init__(self, path: Path) -> None:
        self._path = path
        read_token(path)

    def issue(self, digest: str) -> str:  # noqa: ARG002 a token is not bound to the request
        """Return `Bearer TOKEN`."""
        return f"Bearer {read_token(self._path)}"

    def check_ack(self, credential: str, digest: str) -> None:
        """Raise AuthError unless the answering side knows this token."""
        if not hmac.compare_digest(credential.encode(), _mac(read_token(self._path), digest).encode()):
            raise AuthError("the acknowledgement is not signed with this node's token")


class TokenChecker:
    """The hub's side of tokens."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._file = WatchedFiles(path, lambda: _Tokens(read_tokens(path)), _Tokens(read_tokens(path)))

    def check(self, credential: str, digest: str) -> Caller:  # noqa: ARG002 a token is not bound to the request
        """Return the name that the file has for the token."""
        if len(credential) > MAX_CREDENTIAL:
            raise AuthError("the token is too long")
        found = self._current().names.get(_fingerprint(credential))
        if found is None:
            raise AuthError("unknown token")
        return Caller(None, "", "token", found)

    def issue_ack(self, caller: Caller, digest: str) -> str:
        """Return the digest signed with the caller's own token."""
        token = self._current().tokens.get(caller.name)
        if token is None:
            raise AuthError(f"{caller.name} no longer has a token")
        return _mac(token, digest)

    def _current(self) -> "_Tokens":
        """Return the tokens, read again where the file has changed."""
        with self._lock:
            self._file.refresh()
            if self._file.error:
                raise RetryableAuthError(f"tokens cannot be checked: {self._file.error}")
            return self._file.content


class _Tokens:
    """The file's lines, found without a scan.

    A token is looked up by its hash: the time it takes does not reveal how much of a guess was right.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self.names = {_fingerprint(token): name for token, name in names.items()}
        self.tokens: dict[str, str] = {}
        for token, name in names.items():
            self.tokens.setdefault(name, token)


def _fingerprint(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _mac(token: str, digest: str) -> str:
    return hmac.new(token.encode(), digest.encode(), hashlib.sha256).hexdigest()
