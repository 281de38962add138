"""Pages need TLS or loopback, by the address that was connected to: no header changes that."""

import pytest
from fastapi import Request

from gpuwaste.hub.sign_in.origins import CLEAR, HOST, Origins, Rejection


def request(server: tuple[str, int] | None, scheme: str, host: str, peer_uid: int | None = None) -> Request:
    headers = [(b"host", host.encode()), (b"x-forwarded-proto", b"https"), (b"forwarded", b"proto=https")]
    state = {"peer_uid": peer_uid}
    return Request({"type": "http", "server": server, "scheme": scheme, "headers": headers, "state": state})


@pytest.mark.parametrize(
    ("server", "scheme", "host", "origin"),
    [
        (("192.0.2.1", 9461), "https", "hub.example.org", "https://hub.example.org"),
        (("192.0.2.1", 9461), "https", "192.0.2.1:9461", "https://192.0.2.1:9461"),
        (("192.0.2.1", 443), "https", "192.0.2.1", "https://192.0.2.1"),
        (("2001:db8::1", 9461), "https", "[2001:db8::1]:9461", "https://[2001:db8::1]:9461"),
        (("127.0.0.1", 9461), "http", "hub.example.org", "https://hub.example.org"),
        (("127.0.0.1", 9461), "http", "LOCALHOST:8080", "http://localhost:8080"),
        (("::1", 9461), "http", "[::1]:9461", "http://[::1]:9461"),
        (("192.0.2.1", 9461), "http", "hub.example.org", CLEAR),
        (("192.0.2.1", 9461), "http", "192.0.2.1:9461", CLEAR),
        (("192.0.2.1", 9461), "http", "localhost:9461", CLEAR),
        (("192.0.2.1", 9461), "https", "localhost:9461", HOST),
        (("192.0.2.1", 9461), "https", "192.0.2.1:80", HOST),
        (("192.0.2.1", 9461), "https", "192.0.2.2:9461", HOST),
        (("127.0.0.1", 9461), "http", "192.0.2.1:9461", HOST),
        (None, "http", "localhost", CLEAR),
    ],
)
def test_where_pages_are_served(server: tuple[str, int], scheme: str, host: str, origin: str) -> None:
    """Over TLS, or on loopback, under the URL or the address itself; anything else is refused with its reason."""
    try:
        found = Origins("https://hub.example.org", "", tls=False).of(request(server, scheme, host))
    except Rejection as rejection:
        found = rejection.reason
    assert found == origin


def test_a_unix_socket_serves_the_url_alone() -> None:
    """What comes over the Unix socket came from a proxy: it has the URL's host, never that of the proxy's own link."""
    origins = Origins("https://hub.example.org", "127.0.0.1:9461", tls=False)
    assert origins.of(request(None, "http", "hub.example.org", peer_uid=0)) == "https://hub.example.org"
    with pytest.raises(Rejection, match=r"the pages are at https://hub\.example\.org"):
        origins.of(request(None, "http", "localhost", peer_uid=0))
