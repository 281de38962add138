"""Watches a machine's network, in its namespace of networks alone: python -m tools.field.watch FILE [ADDRESS]...

Writes a line for each packet that leaves by the link that leads nowhere, and for each question of DNS, which it answers
at once with "no such name". Packets to an ADDRESS, of another machine of the same field, are not reported.
"""

import ipaddress
import os
import select
import socket
import sys
from pathlib import Path
from typing import Final, TextIO

from tools.field.boot import LINK, RESOLVER

READY: Final = "ready"
_ALL: Final = 0x0003
_OUTGOING: Final = 4
_ICMP6: Final = 58
_DNS: Final = 53
_NO_SUCH_NAME: Final = b"\x81\x83"
_LIMIT: Final = 1000
"""Lines of one watch: enough to tell what is wrong."""


def main() -> None:
    """Watch until killed."""
    dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    dns.bind((RESOLVER, _DNS))
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL))
    with Path(sys.argv[1]).open("a", encoding="utf-8") as out, dns, packets:
        _say(out, f"{READY} {os.getpid()}")
        _watch(dns, packets, out)


def _watch(dns: socket.socket, packets: socket.socket, out: TextIO) -> None:
    lines = 0
    known = tuple(f"packet to {address}," for address in sys.argv[2:])
    while True:
        readable, _, _ = select.select([dns, packets], [], [])
        for one in readable:
            line = _question(dns) if one is dns else _packet(packets)
            if line and not line.startswith(known) and lines < _LIMIT:
                lines += 1
                _say(out, line)


def _question(dns: socket.socket) -> str:
    data, peer = dns.recvfrom(2048)
    dns.sendto(data[:2] + _NO_SUCH_NAME + data[4:], peer)
    return f"question for {name_asked(data)}"


def name_asked(question: bytes) -> str:
    """Return the name that a question of DNS is about (RFC 1035, 4.1.2)."""
    labels, at = [], 12
    while at < len(question) and (length := question[at]):
        labels.append(question[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    return ".".join(labels)


def _packet(packets: socket.socket) -> str:
    data, (link, _, kind, *_) = packets.recvfrom(2048)
    return told(data) if link == LINK and kind == _OUTGOING else ""


def told(packet: bytes) -> str:
    """Return a line on a packet of IP; "" for what a kernel sends by itself: neighbours and groups of IPv6."""
    version = packet[0] >> 4 if packet else 0
    if version == 4:  # noqa: PLR2004 of IP
        target: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.IPv4Address(packet[16:20])
        protocol, ports = packet[9], packet[(packet[0] & 15) * 4 :][:4]
    elif version == 6 and len(packet) >= 40:  # noqa: PLR2004 of IP, and its header
        target = ipaddress.IPv6Address(packet[24:40])
        protocol, ports = packet[6], packet[40:44]
        if target.is_multicast and protocol in {0, _ICMP6}:
            return ""
    else:
        return ""
    return f"packet to {target}, protocol {protocol}, port {int.from_bytes(ports[2:4], 'big')}"


def _say(out: TextIO, line: str) -> None:
    out.write(f"{line}\n")
    out.flush()


if __name__ == "__main__":
    main()
