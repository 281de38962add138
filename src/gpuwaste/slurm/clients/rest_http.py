"""One GET to slurmrestd with its JWT; each failure, also Slurm's own, is one line.

The token is a password in a private file, read again for each request, never printed.
"""

import base64
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from gpuwaste.core import log_event
from gpuwaste.core.errors import ConfigError, ParseError, SlurmError, WireError
from gpuwaste.core.files import read_closed
from gpuwaste.core.text import words_of
from gpuwaste.net.addresses import parse_endpoint
from gpuwaste.net.http import (
    AnswerSizeError,
    DeadlineError,
    HttpAnswer,
    HttpExchange,
    HttpRequest,
    UnreachedError,
    cause_of,
    tls_context,
)
from gpuwaste.slurm.accounting.rest_value import error_text, jobs

_TOKEN = re.compile(r"[A-Za-z0-9_\-]{2,4096}\.[A-Za-z0-9_\-]{2,8192}\.[A-Za-z0-9_\-]{2,4096}")
_MAX_FILE: Final = 64 * 1024
_PREFIX: Final = "SLURM_JWT="  # as `scontrol token` prints it
_CLEARTEXT: Final = log_event.warning(
    "token-in-cleartext: {url}: the token is sent unencrypted: use TLS or a Unix socket for slurmrestd",
    "`slurmrestd_url` is http:// to another host: anybody who can read this traffic can use the token.",
)
_CONNECT_S: Final = 5.0
_RETRY_AFTER_S: Final = (0.0, 0.4)  # between three attempts
_LATER: Final = 503
_OK: Final = 200
_UNAUTHORIZED: Final = frozenset({401, 403, 511})
_NOT_AUTHENTICATED: Final = frozenset({1007, 7000})  # ESLURM_PROTOCOL_AUTHENTICATION..., no connection to slurmdbd
_NO_DATABASE: Final = 7000  # ESLURM_DB_CONNECTION; Slurm 26.05 gives no other reason for a forged token
_UNSPECIFIED: Final = -1  # what 22.05 returns where slurmctld refuses the token, among others
_NO_SUCH_URL: Final = 404


@dataclass(frozen=True, slots=True)
class Token:
    """A JWT with its claims; `user` and `expires` (UTC seconds) are "" and None where the claims lack them."""

    text: str
    user: str = ""
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Token(user={self.user!r}, expires={self.expires})"

    @property
    def expired(self) -> bool:
        """Whether it has expired by this host's clock."""
        return self.expires is not None and self.expires <= time.time()

    def headers(self) -> Mapping[str, str]:
        """Return the headers that slurmrestd of every version accepts; before 23.11 it needs the name too."""
        name = {"X-SLURM-USER-NAME": self.user} if self.user else {}
        return {"X-SLURM-USER-TOKEN": self.text, **name}


def read_token(path: Path) -> Token:
    """Read the token file. Raises ConfigError, never with the token in it."""
    word = read_closed(path, _MAX_FILE, "this token", ": see slurmrestd_token_file").strip().removeprefix(_PREFIX)
    if not _TOKEN.fullmatch(word):
        raise ConfigError(f"{path}: no JWT in this file: write only the token that `scontrol token` prints")
    claims = _claims(word)
    user, expires = claims.get("sun"), claims.get("exp")
    return Token(
        word,
        user if isinstance(user, str) and user.isprintable() and user.isascii() else "",
        expires if isinstance(expires, int | float) and not isinstance(expires, bool) else None,
    )


def _claims(word: str) -> Mapping[str, object]:
    """Return the claims, unchecked: slurmrestd checks the signature."""
    body = word.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


class RestError(SlurmError):
    """An error from slurmrestd; `status` is HTTP's, `numbers` Slurm's own."""

    def __init__(self, message: str, status: int = 0, numbers: frozenset[int] = frozenset()) -> None:
        super().__init__(message)
        self.status = status
        self.numbers = numbers


class TokenError(RestError):
    """The token is missing, expired or rejected."""


class TooLargeError(RestError):
    """The answer is larger than allowed: request less."""


class LateError(RestError):
    """No complete answer in time: request less, or allow more time."""


@dataclass(slots=True)
class RestServer:
    """Address of slurmrestd, and the token for it. Raises ConfigError for an invalid address.

    `url` is http://HOST:PORT, https://HOST:PORT (the system's authorities, or SSL_CERT_FILE) or unix:PATH;
    `token_file` "" sends no token, for a socket of a slurmrestd that runs as the calling user (rest_auth/local).
    `timeout_s` bounds the entire answer.
    """

    url: str
    token_file: str = ""
    timeout_s: float = 20.0
    max_bytes: int = 256 * 1024**2
    _http: HttpExchange = field(init=False, repr=False)

    def __post_init__(self) -> None:
        endpoint = parse_endpoint(self.url, "is slurmrestd running?", "slurmrestd_url")
        tls = tls_context("") if endpoint.scheme == "https" else None
        self._http = HttpExchange(endpoint, tls, self.timeout_s, self.max_bytes, _CONNECT_S)
        if self.token_file and endpoint.clear:
            _CLEARTEXT.log(url=self.url)

    def get_jobs(self, path: str, query: Mapping[str, str | int] | None = None) -> tuple[bytes, list[Any]]:
        """Return the body of a status 200 without an error in it, and its jobs.

        Raises RestError (TokenError, TooLargeError, LateError), ParseError for an invalid body, ConfigError for the
        token file.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        token = read_token(Path(self.token_file)) if self.token_file else None
        if token and token.expired:  # slurmrestd does not report this: its errors name the database
            raise TokenError(f"{self.url}: {_token_problem(token)}")
        headers = {"Accept": "application/json", **(token.headers() if token else {})}
        answer = self._exchange(HttpRequest("GET", target, b"", headers))
        if answer.status != _OK:
            raise self._refused(answer.status, answer.body, path, token)
        try:
            return answer.body, jobs(answer.body)
        except SlurmError as error:  # an error inside a 200
            raise self._refused(answer.status, answer.body, path, token) from error
        except ParseError as error:
            raise ParseError(f"{self.url}{path}: {error}") from error

    def _exchange(self, request: HttpRequest) -> HttpAnswer:
        try:
            for wait_s in _RETRY_AFTER_S:
                with suppress(UnreachedError):
                    answer = self._http.send(request)
                    if answer.status != _LATER:
                        return answer
                time.sleep(wait_s)
            return self._http.send(request)
        except DeadlineError as error:
            raise LateError(
                f"{self.url}: no complete answer within {self.timeout_s:g} s: see slurm_timeout_s"
            ) from error
        except AnswerSizeError as error:
            raise TooLargeError(f"{self.url}: an answer of more than {self.max_bytes} bytes") from error
        except WireError as error:
            raise RestError(f"{self.url}: {cause_of(error)}: is slurmrestd running? see slurmrestd_url") from error

    def _refused(self, status: int, body: bytes, path: str, token: Token | None) -> RestError:
        words, numbers = _answer_errors(body)
        if status in _UNAUTHORIZED or (numbers & _NOT_AUTHENTICATED and "uthentication" in words):
            return TokenError(f"{self.url}: {status}: {_token_problem(token)}", status, numbers)
        if status == _NO_SUCH_URL and not numbers:
            return RestError(f"{self.url}: 404: slurmrestd has no {path}", status)
        hint = " (possibly a token that slurmctld rejects)" if _UNSPECIFIED in numbers else ""
        if _NO_DATABASE in numbers and token is not None:
            hint = " (slurmdbd is down, or rejects the token)"
        return RestError(f"{self.url}: {status}: {words or 'no reason given'}{hint}", status, numbers)


def _token_problem(token: Token | None) -> str:
    renew = "make one with `scontrol token username=USER lifespan=SECONDS`, see slurmrestd_token_file"
    if token is None:
        return f"slurmrestd requires a token: {renew}"
    return f"the token has expired: {renew}" if token.expired else f"the token is rejected: {renew}"


def _answer_errors(body: bytes) -> tuple[str, frozenset[int]]:
    """Return the first error of an answer as text, and the numbers of all."""
    try:
        answer = json.loads(body)
        errors = answer["errors"]
        numbers = frozenset(item["error_number"] for item in errors if isinstance(item.get("error_number"), int))
        return error_text(answer), numbers
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        words = words_of(body[:200])
        return ("" if words.startswith(("<", "{")) else words), frozenset()
