"""One GET to slurmrestd: TCP, TLS or a Unix socket, bounded in time and size, each failure in one line.

Asked again is only what cannot have cost slurmdbd anything: a connection that was refused, and a 503. A question that
ran into its time-out is not: it may still be at work in the database.
"""

import json
import logging
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, MaxRetryError, NewConnectionError, ReadTimeoutError

from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError, ParseError, SlurmError
from gpuwaste.core.loopback import has_loopback
from gpuwaste.core.text import words_of
from gpuwaste.core.unix_socket import connect_unix, require_room
from gpuwaste.slurm.accounting.rest_value import error_text, jobs
from gpuwaste.slurm.clients.rest_token import Token, read_token

_CLEARTEXT: Final = log_event.warning(
    "token-in-cleartext: {url}: the token is sent unencrypted: use TLS or a Unix socket for slurmrestd",
    "`slurmrestd_url` is http:// to another host: whoever reads that traffic can use the token.",
)
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)  # our error says what its warnings would
_OBJECT = re.compile(r"^\w+\(.*?\): (?:Failed to establish a new connection: )?")
_UNIX: Final = "unix:"
_CHUNK: Final = 1 << 18
_CONNECT_S: Final = 5.0
_RETRY: Final = urllib3.Retry(
    total=2,
    connect=2,
    read=False,
    status=2,
    other=False,
    redirect=False,
    status_forcelist=(503,),
    allowed_methods=("GET",),
    backoff_factor=0.2,
    raise_on_status=False,
)
_OK: Final = 200
_UNAUTHORIZED: Final = frozenset({401, 403, 511})
_NOT_AUTHENTICATED: Final = frozenset({1007, 7000})  # ESLURM_PROTOCOL_AUTHENTICATION..., no connection to slurmdbd
_NO_DATABASE: Final = 7000  # ESLURM_DB_CONNECTION; Slurm 26.05 gives no other reason for a forged token
_UNSPECIFIED: Final = -1  # what 22.05 says where slurmctld refuses the token, among others
_NO_SUCH_URL: Final = 404


class RestError(SlurmError):
    """slurmrestd's refusal; `status` is HTTP's, `numbers` Slurm's own."""

    def __init__(self, message: str, status: int = 0, numbers: frozenset[int] = frozenset()) -> None:
        super().__init__(message)
        self.status = status
        self.numbers = numbers


class TokenError(RestError):
    """The token is missing, over or refused."""


class TooLargeError(RestError):
    """The answer is larger than asked for: ask for less."""


class LateError(RestError):
    """No whole answer in time: ask for less, or allow more time."""


@dataclass(slots=True)
class RestServer:
    """Where slurmrestd listens and what opens it. Raises ConfigError for an address that is none.

    `url` is http://HOST:PORT, https://HOST:PORT (the system's authorities, or SSL_CERT_FILE) or unix:PATH;
    `token_file` "" sends no token, for a socket at which slurmrestd runs as the user who asks (rest_auth/local).
    `timeout_s` bounds the whole answer.
    """

    url: str
    token_file: str = ""
    timeout_s: float = 20.0
    max_bytes: int = 256 * 1024**2
    _pool: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._pool = _pool(self.url, self.timeout_s)
        if self.token_file and _in_the_clear(self.url):
            _CLEARTEXT.log(url=self.url)

    def get_jobs(self, path: str, query: Mapping[str, str | int] | None = None) -> tuple[bytes, list[Any]]:
        """Return the body of a 200 without an error in it, and its jobs.

        Raises RestError (TokenError, TooLargeError, LateError), ParseError for a body that is none, ConfigError for
        the token file.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        token = read_token(Path(self.token_file)) if self.token_file else None
        if token and token.expired:  # slurmrestd would not say so: its errors speak of the database
            raise TokenError(f"{self.url}: {_token_problem(token)}")
        headers = {"Accept": "application/json", **(token.headers() if token else {})}
        status, body = self._exchange(target, headers)
        if status != _OK:
            raise self._refused(status, body, path, token)
        try:
            return body, jobs(body)
        except SlurmError as error:  # an error inside a 200
            raise self._refused(status, body, path, token) from error
        except ParseError as error:
            raise ParseError(f"{self.url}{path}: {error}") from error

    def _exchange(self, target: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        deadline = time.monotonic() + self.timeout_s
        try:
            answer = self._pool.urlopen(
                "GET", target, headers=headers, preload_content=False, decode_content=False, retries=_RETRY
            )
            try:
                body = self._read(answer, deadline)
            except BaseException:
                answer.close()  # half an answer is still in the connection
                raise
            answer.release_conn()
        except ReadTimeoutError as error:
            raise self._late() from error
        except (HTTPError, OSError, ValueError) as error:
            raise RestError(f"{self.url}: {_cause(error)}: is slurmrestd running? see slurmrestd_url") from error
        return answer.status, body

    def _read(self, answer: Any, deadline: float) -> bytes:
        parts, size = [], 0
        while part := answer.read(_CHUNK):
            size += len(part)
            if size > self.max_bytes:
                raise TooLargeError(f"{self.url}: an answer of more than {self.max_bytes} bytes")
            if time.monotonic() > deadline:
                raise self._late()
            parts.append(part)
        return b"".join(parts)

    def _late(self) -> LateError:
        return LateError(f"{self.url}: no complete answer within {self.timeout_s:g} s: see slurm_timeout_s")

    def _refused(self, status: int, body: bytes, path: str, token: Token | None) -> RestError:
        words, numbers = _answer_errors(body)
        if status in _UNAUTHORIZED or (numbers & _NOT_AUTHENTICATED and "uthentication" in words):
            return TokenError(f"{self.url}: {status}: {_token_problem(token)}", status, numbers)
        if status == _NO_SUCH_URL and not numbers:
            return RestError(f"{self.url}: 404: it does not know {path}", status)
        hint = " (possibly a token that slurmctld rejects)" if _UNSPECIFIED in numbers else ""
        if _NO_DATABASE in numbers and token is not None:
            hint = " (slurmdbd is down, or rejects the token)"
        return RestError(f"{self.url}: {status}: {words or 'no reason given'}{hint}", status, numbers)


def _token_problem(token: Token | None) -> str:
    renew = "`scontrol token username=USER lifespan=SECONDS` makes one, see slurmrestd_token_file"
    if token is None:
        return f"slurmrestd requires a token: {renew}"
    return f"the token has expired: {renew}" if token.expired else f"the token is rejected: {renew}"


def _answer_errors(body: bytes) -> tuple[str, frozenset[int]]:
    """Return the first error of an answer in words, and the numbers of all."""
    try:
        answer = json.loads(body)
        errors = answer["errors"]
        numbers = frozenset(item["error_number"] for item in errors if isinstance(item.get("error_number"), int))
        return error_text(answer), numbers
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        words = words_of(body[:200])
        return ("" if words.startswith(("<", "{")) else words), frozenset()


def _pool(url: str, timeout_s: float) -> Any:
    timeout = urllib3.Timeout(connect=min(_CONNECT_S, timeout_s), read=timeout_s)
    if url.startswith(_UNIX):
        path = url.removeprefix(_UNIX).removeprefix("//")
        if not path.startswith("/"):
            raise ConfigError(f"slurmrestd_url {url!r}: expected unix:/PATH")
        require_room("slurmrestd_url", path)
        return _UnixPool(path, timeout)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"slurmrestd_url {url!r}: {error}") from error
    bare = parts.path in {"", "/"} and not parts.query and parts.username is None
    if parts.scheme not in {"http", "https"} or not parts.hostname or not bare:
        raise ConfigError(f"slurmrestd_url {url!r}: expected http://HOST:PORT, https://HOST:PORT or unix:/PATH")
    kind = urllib3.HTTPSConnectionPool if parts.scheme == "https" else urllib3.HTTPConnectionPool
    return kind(parts.hostname, port, timeout=timeout)


class _UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: Any) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def _new_conn(self) -> socket.socket:
        try:
            return connect_unix(self._path, _CONNECT_S)
        except OSError as error:
            raise NewConnectionError(self, error.strerror or str(error)) from error


class _UnixPool(urllib3.HTTPConnectionPool):
    def __init__(self, path: str, timeout: urllib3.Timeout) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def _new_conn(self) -> Any:
        return _UnixConnection(self._path, self.timeout.connect_timeout)


def _cause(error: Exception) -> str:
    """Return the cause in a few words, without urllib3's object names."""
    reason = error.reason if isinstance(error, MaxRetryError) and error.reason else error
    if isinstance(reason, ConnectTimeoutError) and not isinstance(reason, NewConnectionError):
        return f"no connection within {_CONNECT_S:g} s"
    text = _OBJECT.sub("", str(reason), count=1)
    return (" ".join(text.split()) or type(reason).__name__)[:200]


def _in_the_clear(url: str) -> bool:
    return url.startswith("http://") and not has_loopback(url)
