"""Whether an address is public: an IPv6 address that leads to an IPv4 address is judged by that one.

Translators and tunnels read an IPv4 address in an IPv6 one: NAT64 (RFC 6052), 6to4 (RFC 3056), mapped and compatible
addresses (RFC 4291), SIIT (RFC 7915). By such an address a name could lead into the site.
"""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_LAST_32: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "::/96"))
)  # their last 32 bits are an IPv4 address
_NAT64_OF_A_SITE: Final = ipaddress.IPv6Network("64:ff9b:1::/48")  # RFC 8215: not globally reachable
_SPECIAL: Final = frozenset(map(ipaddress.IPv6Address, ("::", "::1")))


def meant(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address) or address in _SPECIAL:
        return address
    if address.sixtofour is not None:
        return address.sixtofour
    if any(address in network for network in _LAST_32):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: Address) -> bool:
    """Tell whether an address leads out of the site; one of a Teredo tunnel or of a site's own NAT64 does not."""
    end = meant(address)
    if isinstance(end, ipaddress.IPv6Address) and (end in _NAT64_OF_A_SITE or end.is_site_local):
        return False
    return end.is_global and not end.is_multicast
