"""Which addresses are public: those that lead into the site by another notation or a translator are not."""

import ipaddress

import pytest

from gpuwaste.net.addresses import embedded_address, is_public

INSIDE = (
    "10.0.0.1", "127.0.0.1", "169.254.169.254", "100.64.0.1", "192.168.1.1", "0.0.0.1", "224.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fc00::1", "fec0::1", "ff0e::1", "2001:db8::1",
    "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::10.0.0.1", "::ffff:0:10.0.0.1",
    "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::10.0.0.1", "64:ff9b:1:a00:0:100::", "64:ff9b:1::8.8.8.8",
    "2002:a00:1::", "2002:7f00:1::1", "2002:c0a8:101::9",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
    "168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::168.63.129.16", "2002:a83f:8110::1",
    "192.0.0.192", "192.0.0.9", "192.88.99.1",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:10.0.0.1", "2606:4700::200:5efe:168.63.129.16",
    "fe80::5efe:8.8.8.8",
    "3fff::1", "3fff:fff::1", "5f00::1", "64:ff9b:2::8.8.8.8", "4000::1", "100::1",
)  # fmt: skip
PUBLIC = (
    "8.8.8.8", "168.63.129.17", "192.0.1.1", "2606:4700::5efe:8.8.8.8", "2606:4700::1:5efe:a00:1",
    "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
)  # fmt: skip


@pytest.mark.parametrize("text", INSIDE)
def test_an_address_inside_the_site_is_not_public(text: str) -> None:
    """However it is written: mapped, compatible, translated (NAT64, also by a site's prefix), 6to4, Teredo, ISATAP.

    Services of a cloud for its own machines (Azure 168.63.129.16, Oracle 192.0.0.192) are inside too.
    """
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_stays_one(text: str) -> None:
    """A hub in an IPv6-only network reaches receivers through its NAT64."""
    assert is_public(ipaddress.ip_address(text))


def test_the_address_that_is_meant_is_found() -> None:
    """A network that a site lists is that of the receiver, whatever the notation."""
    addresses = [
        embedded_address(ipaddress.ip_address(text))
        for text in ("64:ff9b::10.1.2.3", "::ffff:10.1.2.3", "2002:a01:203::")
    ]
    assert addresses == [ipaddress.ip_address("10.1.2.3")] * 3
    assert embedded_address(ipaddress.ip_address("2606:4700::1")) == ipaddress.ip_address("2606:4700::1")
