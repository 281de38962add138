"""The session's cookie: `__Host-` and Secure wherever the browser uses TLS, a plain name on loopback alone."""

from typing import Final

from fastapi import Request, Response

_NAME: Final = "gpuwaste"
_LONGEST: Final = 8192  # characters of all cookies that are looked through


def cookie_of(request: Request, origin: str) -> str:
    """Return the token that the browser sent, empty for none, and for several: one of them is somebody else's."""
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
    return f"__Host-{_NAME}" if _is_secure(origin) else _NAME
