"""What counts as loopback, for clients, services and checks alike."""

import re
from pathlib import Path

import pytest

import gpuwaste.net
from gpuwaste.net.addresses import has_loopback, is_loopback, is_loopback_address


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True),
        ("LocalHost", True),
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::1%lo", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:192.0.2.1", False),
        ("192.0.2.1", False),
        ("localhost.example.org", False),
        ("", False),
        ("127.0.0.1.example.org", False),
        ("127.0.0.1%example.org", False),
    ],
)
def test_names_and_addresses(host: str, own: bool) -> None:
    """localhost, 127.0.0.0/8 and ::1, also where IPv4 comes in over an IPv6 socket; a name is no address."""
    assert is_loopback(host) is own
    assert is_loopback_address(host) is (own and host.lower() != "localhost")


@pytest.mark.parametrize(
    ("url", "own"),
    [("http://[::1]:9400/metrics", True), ("http://node7:9400", False), ("http://[::1", False), ("localhost", False)],
)
def test_urls(url: str, own: bool) -> None:
    """The host of a URL counts; a URL that is none has no loopback."""
    assert has_loopback(url) is own


def test_no_other_module_decides_it() -> None:
    """net/addresses.py is the one place of the product that asks ipaddress for it."""
    sources = Path(next(iter(gpuwaste.net.__path__))).parents[2]
    files = [*sources.glob("src/gpuwaste/**/*.py"), *sources.glob("agent/gpuwaste/**/*.py")]
    assert [path.name for path in files if re.search(r"\.is_loopback\b", path.read_text())] == ["addresses.py"]
