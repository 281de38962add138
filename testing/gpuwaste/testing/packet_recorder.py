"""PacketRecorder: where the packets of a network namespace go, those to its own addresses included.

A packet socket sees them all (packet(7)); of TCP the packets that open a connection are counted, of everything else
each one. IPv4: RFC 791, IPv6: RFC 8200.
"""

import contextlib
import ipaddress
import socket
import struct
import threading
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from gpuwaste.testing.cluster_process import ClusterError

_IPV4: Final = 0x0800
_IPV6: Final = 0x86DD
_ALL: Final = 0x0003  # ETH_P_ALL
_SOL_PACKET: Final = 263
_STATISTICS: Final = 6  # PACKET_STATISTICS
_FORCE_BUFFER: Final = 33  # SO_RCVBUFFORCE
_BUFFER: Final = 64 << 20
_HEAD: Final = 128  # bytes of a packet that are read
_SYN, _ACK = 0x02, 0x10
_PORTS: Final = {socket.IPPROTO_TCP: "tcp", socket.IPPROTO_UDP: "udp"}
_LOOK_S: Final = 0.2
_MARK_S: Final = 60.0


@dataclass(frozen=True, order=True, slots=True)
class Destination:
    """Where packets went: tcp, udp or the number of another protocol; port 0 where it has none."""

    protocol: str
    address: str
    port: int

    @property
    def local(self) -> bool:
        """Whether the address is one of loopback."""
        return ipaddress.ip_address(self.address).is_loopback


class PacketRecorder:
    """Counts packets by destination from the start of the block to its end; needs CAP_NET_RAW and CAP_NET_ADMIN."""

    def __init__(self) -> None:
        self._counts: Counter[Destination] = Counter()
        self._seen = threading.Condition()
        self._end = threading.Event()
        self._marks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)  # what arrives here was sent by `counts`
        self._marks.bind(("127.0.0.1", 0))
        self._mark = Destination("udp", *self._marks.getsockname())
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL))
        self._socket.setsockopt(socket.SOL_SOCKET, _FORCE_BUFFER, _BUFFER)
        self._socket.settimeout(_LOOK_S)
        self._thread = threading.Thread(target=self._read, name="packet recorder", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        self._socket.close()
        self._marks.close()

    def counts(self) -> dict[Destination, int]:
        """Return the packets so far by destination: those that were sent before this call, each one."""
        with self._seen:
            wanted = self._counts[self._mark] + 1
            self._marks.sendto(b"", self._marks.getsockname())
            if not self._seen.wait_for(lambda: self._counts[self._mark] >= wanted, _MARK_S):
                raise ClusterError("the packet recorder does not see its own packets")
            return {found: count for found, count in self._counts.items() if found != self._mark}

    def lost(self) -> int:
        """Return how many packets the kernel could not hand over since the last call."""
        return int(struct.unpack("2I", self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 8))[1])

    def _read(self) -> None:
        while not self._end.is_set():
            with contextlib.suppress(TimeoutError):
                packet, (_, protocol, kind, *_) = self._socket.recvfrom(_HEAD)
                if kind != socket.PACKET_OUTGOING:  # loopback shows each one twice; nothing else comes in
                    continue
                if (found := destination(protocol, packet)) is not None:
                    with self._seen:
                        self._counts[found] += 1
                        self._seen.notify_all()


def destination(protocol: int, packet: bytes) -> Destination | None:
    """Return where a packet goes; None for one of an open TCP connection, and for what is not IP."""
    if protocol == _IPV4:
        number, at = packet[9], (packet[0] & 0x0F) * 4
        address = socket.inet_ntop(socket.AF_INET, packet[16:20])
    elif protocol == _IPV6:
        number, at = packet[6], 40
        address = socket.inet_ntop(socket.AF_INET6, packet[24:40])
    else:
        return None
    if number == socket.IPPROTO_TCP and packet[at + 13] & (_SYN | _ACK) != _SYN:
        return None
    port = int.from_bytes(packet[at + 2 : at + 4], "big") if number in _PORTS else 0
    return Destination(_PORTS.get(number, str(number)), address, port)
