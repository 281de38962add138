"""The origin of a request for a page and its claimed user: the page's origin, the cookie, the proxy's header.

The session's cookie is `__Host-` and Secure wherever the browser uses TLS, a plain name only on loopback.
"""

import pwd
import re
from collections.abc import Iterable
from typing import Final

from fastapi import Request, Response

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.refusal import FORBIDDEN, Refusal
from gpuwaste.net.addresses import DEFAULT_PORTS, is_loopback, parse_listen, split_url

HOST: Final = "host"
CLEAR: Final = "clear"
ORIGIN: Final = "origin"
HEADER: Final = "header"
LINK: Final = "link"
REASONS: Final = (HOST, CLEAR, ORIGIN, HEADER, LINK)
_HOST: Final = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253})(?::([0-9]{1,5}))?", re.ASCII)
_READING: Final = frozenset({"GET", "HEAD"})
_COOKIE: Final = "gpuwaste"
_LONGEST: Final = 8192  # characters of all cookies that are searched
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}", re.ASCII)
_TAKEN: Final = frozenset({"authorization", "connection", "content-length", "cookie", "host", "origin"})


class Rejection(Refusal):
    """A 403; `reason` is one of REASONS."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(FORBIDDEN, words)
        self.reason = reason


class Origins:
    """The origin of the pages, from `[web] url` and `[hub] listen`."""

    def __init__(self, url: str, listen: str, *, tls: bool) -> None:
        """Read where the pages are. Raises ConfigError for a URL that is no origin, or without TLS."""
        self._public = _public(url) if url else ""
        self.base = self._public or _listening(listen, tls=tls)
        """Where links lead; empty: not known."""

    def of(self, request: Request) -> str:
        """Return the origin that the browser sees for this request. Raises Rejection where it is none of the hub's."""
        host = _one(request, "host").lower()
        over_unix = getattr(request.state, "peer_uid", None) is not None
        scheme = request.scope["scheme"]
        address, port = request.scope.get("server") or ("", None)
        if not over_unix and scheme != "https" and not is_loopback(address):
            raise Rejection(CLEAR, "pages are served over TLS or on loopback only: set [hub] tls_cert, or use a proxy")
        if self._public and host == _host(self._public):
            return self._public
        if not over_unix and _is_own(host, scheme, address, port):
            return f"{scheme}://{host}"
        known = f"the pages are at {self._public}" if self._public else "set [web] url to where the pages are"
        raise Rejection(HOST, f"this host name is not the hub's: {known} (a proxy has to pass the Host header on)")


def require_same_origin(request: Request, origin: str) -> None:
    """Raise Rejection for a request that may change something, unless a page of this origin sent it."""
    if request.method in _READING:
        return
    sites = request.headers.getlist("sec-fetch-site")
    origins = request.headers.getlist("origin")
    if sites == ["same-origin"] or (not sites and origins == [origin]):
        return
    raise Rejection(ORIGIN, "this request comes from another site: use the form on the hub's own page")


def _one(request: Request, name: str) -> str:
    """Return the value of a header that was sent once, empty otherwise."""
    values = request.headers.getlist(name)
    return values[0] if len(values) == 1 else ""


def _is_own(host: str, scheme: str, address: str, port: int | None) -> bool:
    """Return whether a Host header is the address that was connected to; any port of loopback: it may be a tunnel's."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].strip("[]")
    if is_loopback(address):
        return is_loopback(name)
    return name == address.lower() and int(found[2] or DEFAULT_PORTS[scheme]) == port


def _public(url: str) -> str:
    """Return the origin of `[web] url`, as browsers write it."""
    expected = "https://HOST or https://HOST:PORT"
    parts = split_url(url, "[web] url", expected)
    origin = _joined(parts.scheme, parts.hostname or "", parts.port)
    if not _HOST.fullmatch(_host(origin)):
        raise ConfigError(f"[web] url {url!r}: expected {expected}")
    if parts.path not in {"", "/"} or parts.query or parts.fragment or parts.username is not None:
        raise ConfigError(f"[web] url {url!r}: expected a host name of its own, without a path, query or user")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ConfigError(f"[web] url {url!r}: sessions need TLS: expected https://, or http:// on loopback")
    return origin


def _listening(listen: str, *, tls: bool) -> str:
    if not listen:
        return ""
    address = parse_listen(listen, "hub")
    if address.every or not (tls or is_loopback(address.host)):
        return ""
    return _joined("https" if tls else "http", address.host, address.port)


def _host(origin: str) -> str:
    return origin.partition("://")[2]


def _joined(scheme: str, name: str, port: int | None) -> str:
    host = f"[{name}]" if ":" in name else name
    return f"{scheme}://{host}" if port in {None, DEFAULT_PORTS.get(scheme)} else f"{scheme}://{host}:{port}"


def cookie_of(request: Request, origin: str) -> str:
    """Return the token that the browser sent, empty for none, and for several: one of them is not the hub's."""
    headers = request.headers.getlist("cookie")
    if sum(map(len, headers)) > _LONGEST:
        return ""
    pairs = (pair.strip().partition("=") for header in headers for pair in header.split(";"))
    found = [value for name, _, value in pairs if name == _name(origin)]
    return found[0] if len(found) == 1 else ""


def set_cookie(answer: Response, origin: str, token: str) -> None:
    """Have the browser keep the token until it is closed."""
    answer.set_cookie(_name(origin), token, path="/", secure=_is_secure(origin), httponly=True, samesite="lax")


def drop_cookie(answer: Response, origin: str) -> None:
    """Have the browser forget its token."""
    answer.delete_cookie(_name(origin), path="/", secure=_is_secure(origin), httponly=True, samesite="lax")


def _is_secure(origin: str) -> bool:
    return origin.startswith("https:")


def _name(origin: str) -> str:
    return f"__Host-{_COOKIE}" if _is_secure(origin) else _COOKIE


class ProxyHeader:
    """The header of `[web] proxy_header`, trusted from the uids in `uids`."""

    def __init__(self, name: str, uids: frozenset[int]) -> None:
        """Set the header's name and who may send it. Raises ConfigError for a header that has another use."""
        if not _NAME.fullmatch(name) or name.lower() in _TAKEN:
            raise ConfigError(f"[web] proxy_header {name!r}: expected a header of its own, such as X-Remote-User")
        self.uids = uids
        self._name = name.lower()

    def user(self, request: Request) -> str | None:
        """Return the user that the proxy names, None without the header. Raises Rejection where it is not trusted."""
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
