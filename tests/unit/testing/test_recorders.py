"""What the recorders of a watched network read from packets and from questions to a name server."""

import socket
import struct

import pytest

from gpuwaste.testing.dns_recorder import read_name
from gpuwaste.testing.packet_recorder import Destination, destination

IPV4, IPV6 = 0x0800, 0x86DD
SYN, SYN_ACK, ACK = 0x02, 0x12, 0x10


def ipv4(protocol: int, body: bytes, options: bytes = b"") -> bytes:
    head = struct.pack(">BBHHHBBH", 0x45 + len(options) // 4, 0, 0, 0, 0, 64, protocol, 0)
    return head + socket.inet_aton("127.0.0.1") + socket.inet_aton("192.0.2.1") + options + body


def tcp(flags: int) -> bytes:
    return struct.pack(">HHIIBBHHH", 40000, 443, 0, 0, 0x50, flags, 0, 0, 0)


@pytest.mark.parametrize("options", [b"", b"\0" * 8])
def test_the_packet_that_opens_a_connection_counts(options: bytes) -> None:
    """Of TCP only SYN is a destination, with and without IP options; answers and data are not."""
    found = [destination(IPV4, ipv4(6, tcp(flags), options)) for flags in (SYN, SYN_ACK, ACK)]
    assert found == [Destination("tcp", "192.0.2.1", 443), None, None]


def test_datagrams_and_other_protocols_count() -> None:
    """UDP has a port, ICMP has none, ARP is no IP; IPv6 is read as well."""
    udp = struct.pack(">HHHH", 5000, 53, 8, 0)
    head = struct.pack(">IHBB", 6 << 28, 8, 17, 64)
    six = head + socket.inet_pton(socket.AF_INET6, "::1") + socket.inet_pton(socket.AF_INET6, "2001:db8::7") + udp
    assert destination(IPV4, ipv4(17, udp)) == Destination("udp", "192.0.2.1", 53)
    assert destination(IPV4, ipv4(1, b"\3\3\0\0")) == Destination("1", "192.0.2.1", 0)
    assert destination(IPV6, six) == Destination("udp", "2001:db8::7", 53)
    assert destination(0x0806, b"\0" * 28) is None
    assert not Destination("tcp", "192.0.2.1", 443).local
    assert Destination("tcp", "127.3.2.1", 443).local


def test_a_question_has_its_name() -> None:
    """Labels are joined, and the rest of the question begins where the name ends."""
    message = b"\0" * 12 + b"\3www\7example\3org\0" + b"\0\1\0\1"
    name, end = read_name(message)
    assert (name, message[end : end + 4]) == ("www.example.org", b"\0\1\0\1")
    assert read_name(b"\0" * 12)[0] == ""
