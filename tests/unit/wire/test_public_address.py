"""Which addresses are public: those that lead into the site by another notation or a translator are not."""

import ipaddress

import pytest

from gpuwaste.wire.public_address import is_public, meant

INSIDE = (
    "10.0.0.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "192.168.1.1", "0.0.0.1", "224.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff0e::1", "2001:db8::1",
    "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::10.0.0.1", "::ffff:0:10.0.0.1",
    "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::10.0.0.1", "64:ff9b:1:a00:0:100::", "64:ff9b:1::8.8.8.8",
    "2002:a00:1::", "2002:7f00:1::1", "2002:c0a8:101::9",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
)  # fmt: skip
PUBLIC = (
    "8.8.8.8", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
)  # fmt: skip


@pytest.mark.parametrize("text", INSIDE)
def test_an_address_inside_the_site_is_not_public(text: str) -> None:
    """However it is written: mapped, compatible, translated (NAT64, also by a prefix of the site), 6to4, Teredo."""
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_stays_one(text: str) -> None:
    """A hub in an IPv6-only network reaches receivers through its NAT64."""
    assert is_public(ipaddress.ip_address(text))


def test_the_address_that_is_meant_is_found() -> None:
    """A network that a site lists is that of the receiver, whatever the notation."""
    addresses = [
        meant(ipaddress.ip_address(text)) for text in ("64:ff9b::10.1.2.3", "::ffff:10.1.2.3", "2002:a01:203::")
    ]
    assert addresses == [ipaddress.ip_address("10.1.2.3")] * 3
    assert meant(ipaddress.ip_address("2606:4700::1")) == ipaddress.ip_address("2606:4700::1")
