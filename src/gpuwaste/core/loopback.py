"""Whether an address or a host name is this host's loopback: the one answer of clients, services and checks."""

import ipaddress
from urllib.parse import urlsplit


def is_loopback_address(address: str) -> bool:
    """Tell whether it is a loopback address; an IPv4 address in an IPv6 one counts as itself, a name never does."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


def is_loopback(host: str) -> bool:
    """Tell whether a host that somebody configured is the loopback: `localhost`, or an address of it."""
    return host.lower() == "localhost" or is_loopback_address(host)


def has_loopback(url: str) -> bool:
    """Tell whether a URL's host is the loopback; a URL that cannot be read has none."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
