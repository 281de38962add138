"""Where the pages are, from the configuration: what is taken, what links begin with, what is refused."""

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.hub.sign_in.origins import Origins, ProxyHeader


@pytest.mark.parametrize(
    ("url", "listen", "tls", "base"),
    [
        ("https://Hub.example.org/", "", False, "https://hub.example.org"),
        ("https://hub.example.org:443", "", False, "https://hub.example.org"),
        ("https://hub.example.org:8443", "0.0.0.0:9461", True, "https://hub.example.org:8443"),
        ("https://[2001:DB8::1]:9461", "", False, "https://[2001:db8::1]:9461"),
        ("http://localhost:9461", "", False, "http://localhost:9461"),
        ("", "127.0.0.1:9461", False, "http://127.0.0.1:9461"),
        ("", "[::1]:9461", True, "https://[::1]:9461"),
        ("", "192.0.2.1:9461", True, "https://192.0.2.1:9461"),
        ("", "192.0.2.1:9461", False, ""),
        ("", "0.0.0.0:9461", True, ""),
        ("", "[::]:9461", True, ""),
        ("", "", False, ""),
    ],
)
def test_links_begin_with_the_origin_that_a_browser_sees(url: str, listen: str, tls: bool, base: str) -> None:
    """The URL counts, else an address that is listened on; without TLS nothing but loopback."""
    assert Origins(url, listen, tls=tls).base == base


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("hub.example.org", "expected https://HOST"),
        ("ftp://hub.example.org", "expected https://HOST"),
        ("https://", "expected https://HOST"),
        ("https://hub.example.org:port", "Port could not be cast"),
        ("https://[::1", "Invalid IPv6 URL"),
        ("https://h ub", "expected https://HOST"),
        ("https://hüb", "expected https://HOST"),
        ("https://portal.example.org/gpuwaste", "without a path"),
        ("https://user@hub.example.org", "without a path, query or user"),
        ("http://hub.example.org", "sessions need TLS"),
    ],
)
def test_what_is_no_origin_is_refused(url: str, words: str) -> None:
    """A URL with a path, without a host, or in the clear ends the start with its cause."""
    with pytest.raises(ConfigError, match=words):
        Origins(url, "", tls=False)


@pytest.mark.parametrize("name", ["", "Cookie", "host", "X Remote User", "X-Remote-User:", "X_Remote_User", "é" * 3])
def test_a_header_of_its_own_is_needed(name: str) -> None:
    """A header that means something else, or is none, ends the start."""
    with pytest.raises(ConfigError, match="proxy_header"):
        ProxyHeader(name, frozenset())
