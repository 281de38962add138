"""Parsing and checks of addresses: `listen` of a daemon, URLs of servers, loopback, and what is public.

An IPv6 address that leads to an IPv4 address is judged by the latter. Translators and tunnels read an IPv4 address in
an IPv6 one: NAT64 (RFC 6052), 6to4 (RFC 3056), mapped and compatible addresses (RFC 4291), SIIT (RFC 7915), ISATAP
(RFC 5214). With such an address a name could lead into the site. Of IPv6 only the addresses allocated for global use
(2000::/3, RFC 4291) can be public: later assignments of IANA elsewhere are not.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.unix_socket import require_room

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_HINT: Final = "is the hub running?"
_KEY: Final = "hub_url"
_URLS: Final = "http://HOST:PORT, https://HOST:PORT or unix:/PATH"
_UNIX: Final = "unix:"
_BETWEEN: Final = re.compile(r"\s+(?=https?://|unix:/)")
_EVERY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 compared with, not bound to
_MAX_PORT: Final = 65535
_MAX_TEXT: Final = 300
_LAST_32: Final = tuple(
    map(ipaddress.IPv6Network, ("64:ff9b::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "::/96"))
)  # their last 32 bits are an IPv4 address
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_DOCUMENTATION: Final = ipaddress.IPv6Network("3fff::/20")  # RFC 9637, unknown to Python's is_global before 3.13
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # the upper half of the interface's identifier
# Addresses that seem public but lead to services of a cloud for its own machines, or nowhere.
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


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host name or address, IPv6 without brackets, and a port; 0 lets the kernel choose one."""

    host: str
    port: int

    @property
    def every(self) -> bool:
        """Whether it means all addresses of the host."""
        return self.host in _EVERY

    @property
    def family(self) -> socket.AddressFamily:
        """The family of its socket."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server; `hint` asks what may be wrong where nothing answers, `key` is the key of its URL."""

    url: str
    scheme: str  # http, https or unix
    host: str  # of a Unix socket: its path
    port: int = 0
    hint: str = _HINT
    key: str = _KEY

    @property
    def clear(self) -> bool:
        """Whether others on the network could read what is sent."""
        return self.scheme == "http" and not is_loopback(self.host)


def parse_listen(text: str, section: str) -> ListenAddress:
    """Read HOST:PORT or [IPv6]:PORT of a section. Only a port is not an address. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= len(str(_MAX_PORT)) else _MAX_PORT + 1
    if len(text) > _MAX_TEXT or number > _MAX_PORT:
        raise ConfigError(f"[{section}] listen {text[:_MAX_TEXT]!r}: expected ADDRESS:PORT, such as 127.0.0.1:9460")
    if not host.strip("[]"):
        raise ConfigError(
            f"[{section}] listen {text!r}: expected ADDRESS:PORT; 0.0.0.0:{port} listens on every IPv4 address"
        )
    return ListenAddress(host.strip("[]"), number)


def parse_endpoint(url: str, hint: str = _HINT, key: str = _KEY) -> Endpoint:
    """Read http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH. Raises ConfigError."""
    if url.startswith(_UNIX):
        path = url.removeprefix(_UNIX)
        if not path.startswith("/"):
            raise ConfigError(f"{key} {url!r}: expected unix:/PATH")
        require_room(key, path)
        return Endpoint(url, "unix", path, 0, hint, key)
    parts = split_url(url, key)
    if parts.path not in {"", "/"} or parts.query or parts.fragment or parts.username is not None:
        raise ConfigError(f"{key} {url!r}: expected no path, query or user")
    return _endpoint(url, parts, hint, key)


def parse_target_url(url: str, hint: str, key: str) -> tuple[Endpoint, str]:
    """Read http(s)://HOST[:PORT]/PATH?QUERY; return the server, and the path with its query. Raises ConfigError."""
    expected = "https://HOST[:PORT]/PATH"
    parts = split_url(url, key, expected)
    if parts.fragment or parts.username is not None:
        raise ConfigError(f"{key} {url!r:.120}: expected {expected}")
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ConfigError(f"{key} {url!r:.120}: expected printable ASCII without spaces")
    server = f"{parts.scheme}://{parts.netloc}"
    return _endpoint(server, parts, hint, key), (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def split_url(url: str, key: str, expected: str = _URLS) -> SplitResult:
    """Return the parts of an HTTP URL with a host; a port is a number. Raises ConfigError."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 raises ValueError where it is none
    except ValueError as error:
        raise ConfigError(f"{key} {url!r:.120}: {error}") from error
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ConfigError(f"{key} {url!r:.120}: expected {expected}")
    return parts


def parse_endpoints(urls: str) -> tuple[Endpoint, ...]:
    """Read the URLs of a hub's hosts, separated by spaces. Raises ConfigError."""
    return tuple(map(parse_endpoint, split_urls(urls))) or (parse_endpoint(urls),)


def split_urls(urls: str) -> list[str]:
    """Return URLs that are separated by spaces; the path of a Unix socket may have spaces, too."""
    parts = _BETWEEN.split(urls)
    return [part if part.startswith(_UNIX) else part.strip() for part in parts if part.strip()]


def is_loopback_address(address: str) -> bool:
    """Return whether it is a loopback address; an IPv4 address in an IPv6 one counts as itself, a name is never one."""
    found = ip_address(address)
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found is not None and (mapped or found).is_loopback


def is_loopback(host: str) -> bool:
    """Return whether a configured host is the loopback: `localhost`, or an address of it."""
    return host.lower() == "localhost" or is_loopback_address(host)


def has_loopback(url: str) -> bool:
    """Return whether a URL's host is the loopback; false for a URL that cannot be read."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


def ip_address(text: str) -> IpAddress | None:
    """Return an IP address, IPv6 without its zone; None for any other text."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return ipaddress.IPv6Address(int(found)) if isinstance(found, ipaddress.IPv6Address) else found


def embedded_address(address: IpAddress) -> IpAddress:
    """Return the IPv4 address that an IPv6 address leads to, else the address itself."""
    if isinstance(address, ipaddress.IPv4Address) or address in _SPECIAL:
        return address
    if address.sixtofour is not None:
        return address.sixtofour
    if _is_isatap(address) or any(address in network for network in _LAST_32):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def is_public(address: IpAddress) -> bool:
    """Return whether an address leads out of the site; one of a Teredo tunnel or of a site's own NAT64 does not."""
    end = embedded_address(address)
    plain = isinstance(address, ipaddress.IPv6Address) and (end == address or _is_isatap(address))
    if plain and (address not in _GLOBAL_UNICAST or address in _DOCUMENTATION):
        return False
    if any(end in network for network in _NOT_PUBLIC):
        return False
    return end.is_global and not end.is_multicast


def _endpoint(server: str, parts: SplitResult, hint: str, key: str) -> Endpoint:
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    return Endpoint(server, parts.scheme, parts.hostname or "", port, hint, key)


def _is_isatap(address: ipaddress.IPv6Address) -> bool:
    return (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
