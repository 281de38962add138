"""A network in which nothing happens unseen: `watched_network()` in a program on a host of its own (own_host).

Names are resolved by /etc/hosts and a recorder alone, and every address of the world leads back to this host, where a
connection is refused at once: who wants to reach the outside is recorded and does not wait for it. It changes the
mount namespace of the calling process, which must be its own.
"""

import contextlib
import os
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpuwaste.testing.cluster_process import ClusterError
from gpuwaste.testing.dns_recorder import DnsRecorder
from gpuwaste.testing.packet_recorder import PacketRecorder

_RESOLVER: Final = Path("/etc/resolv.conf")
_SWITCH: Final = Path("/etc/nsswitch.conf")
_NEW_ROUTE: Final = 24  # RTM_NEWROUTE, linux/rtnetlink.h
_FLAGS: Final = 0x0001 | 0x0004 | 0x0400  # NLM_F_REQUEST, NLM_F_ACK, NLM_F_CREATE
_TABLE_LOCAL: Final = 255
_PROTOCOL_BOOT: Final = 3
_SCOPE_HOST: Final = 254
_TYPE_LOCAL: Final = 2
_OUT_INTERFACE: Final = 4  # RTA_OIF


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen: names that were asked for, and packets."""

    dns: DnsRecorder
    packets: PacketRecorder


@contextlib.contextmanager
def watched_network() -> Iterator[Watched]:
    """Record names and packets until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="gw", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        _replace(_RESOLVER, "nameserver 127.0.0.1\n", Path(folder))
        _replace(_SWITCH, _names_by_files_and_dns(), Path(folder))
        for family in (socket.AF_INET, socket.AF_INET6):
            _lead_all_addresses_here(family)
        with DnsRecorder() as dns, PacketRecorder() as packets:
            yield Watched(dns, packets)


def _names_by_files_and_dns() -> str:
    """Return nsswitch.conf with names of hosts resolved by /etc/hosts, then by the name server."""
    lines = _SWITCH.read_text(encoding="utf-8").splitlines() if _SWITCH.exists() else []
    return "\n".join([line for line in lines if not line.startswith("hosts:")] + ["hosts: files dns\n"])


def _replace(path: Path, text: str, folder: Path) -> None:
    """Put a text in the place of a file, in this mount namespace alone."""
    if os.getpid() == 1 or os.getppid() != 1:
        raise ClusterError("watched_network: start the program with python -m gpuwaste.testing.own_host")
    file = folder / path.name
    file.write_text(text, encoding="utf-8")
    file.chmod(0o644)
    subprocess.run(["mount", "--bind", str(file), str(path)], check=True, capture_output=True)


def _lead_all_addresses_here(family: int) -> None:
    """Make each address of a family one of this host: `ip route add local default dev lo`."""
    body = struct.pack("8BI", family, 0, 0, 0, _TABLE_LOCAL, _PROTOCOL_BOOT, _SCOPE_HOST, _TYPE_LOCAL, 0)
    body += struct.pack("HHi", 8, _OUT_INTERFACE, socket.if_nametoindex("lo"))
    message = struct.pack("IHHII", 16 + len(body), _NEW_ROUTE, _FLAGS, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        netlink.send(message)
        error = struct.unpack_from("i", netlink.recv(4096), 16)[0]
    if error:
        raise ClusterError(f"cannot add a route of family {family}: {os.strerror(-error)}")
