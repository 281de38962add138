"""The address on which a daemon listens, as `listen` in gpuwaste.toml names it: the one reader of that text."""

import socket
from dataclasses import dataclass
from typing import Final

from gpuwaste.core.errors import ConfigError

_EVERY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 compared with, not bound to
_MAX_PORT: Final = 65535
_MAX_TEXT: Final = 300


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host name or address, IPv6 without brackets, and a port; 0 lets the kernel choose one."""

    host: str
    port: int

    @property
    def every(self) -> bool:
        """Whether it is every address of the host."""
        return self.host in _EVERY

    @property
    def family(self) -> socket.AddressFamily:
        """The family of its socket."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET


def parse_listen(text: str, section: str) -> ListenAddress:
    """Read HOST:PORT or [IPv6]:PORT of a section. A port alone is no address. Raises ConfigError."""
    host, _, port = text.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= len(str(_MAX_PORT)) else _MAX_PORT + 1
    if len(text) > _MAX_TEXT or number > _MAX_PORT:
        raise ConfigError(f"[{section}] listen {text[:_MAX_TEXT]!r}: expected ADDRESS:PORT, such as 127.0.0.1:9460")
    if not host.strip("[]"):
        raise ConfigError(
            f"[{section}] listen {text!r}: expected ADDRESS:PORT; 0.0.0.0:{port} listens on every IPv4 address"
        )
    return ListenAddress(host.strip("[]"), number)
