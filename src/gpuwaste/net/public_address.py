"""Whether an address is public: an IPv6 address that leads to an IPv4 address is judged by that one.

Translators and tunnels read an IPv4 address in an IPv6 one: NAT64 (RFC 6052), 6to4 (RFC 3056), mapped and compatible
addresses (RFC 4291), SIIT (RFC 7915), ISATAP (RFC 5214). By such an address a name could lead into the site. Of IPv6
only what is allocated for global use (2000::/3, RFC 4291) can be public: what IANA assigns elsewhere later is not.
"""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LAST_32: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "::/96"))
)  # their last 32 bits are an IPv4 address
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_DOCUMENTATION: Final = ipaddress.IPv6Network("3fff::/20")  # RFC 9637, unknown to Python's is_global before 3.13
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # the upper half of the interface's identifier
# Addresses that look public and lead to services of a cloud for its own machines, or to nobody.
_NOT_PUBLIC: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "168.63.129.16/32",  # Azure: DHCP, DNS and the WireServer with the machine's certificates
            "192.0.0.0/24",  # IETF protocol assignments (RFC 6890); Oracle's metadata service is 192.0.0.192
            "192.88.99.0/24",  # relays of 6to4 (RFC 7526)
        ),
    )
)
_SPECIAL: Final = frozenset(map(ipaddress.IPv6Address, ("::", "::1")))


def meant(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address) or address in _SPECIAL:
        return address
    if address.sixtofour is not None:
        return address.sixtofour
    if _is_isatap(address) or any(address in network for network in _LAST_32):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Tell whether an address leads out of the site; one of a Teredo tunnel or of a site's own NAT64 does not."""
    end = meant(address)
    plain = isinstance(address, ipaddress.IPv6Address) and (end == address or _is_isatap(address))
    if plain and (address not in _GLOBAL_UNICAST or address in _DOCUMENTATION):
        return False
    if any(end in network for network in _NOT_PUBLIC):
        return False
    return end.is_global and not end.is_multicast


def _is_isatap(address: ipaddress.IPv6Address) -> bool:
    return (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
