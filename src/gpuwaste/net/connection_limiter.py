"""Limits connections whose request is not complete: anybody may open them, so they are counted and bounded.

Where there are too many, one is closed. A network over its quota loses one: with over an eighth of all places, one of
its connections that are older than a request sent at once ever gets; with over half of them, any. Where no network is
over its quota, those that wait longest are closed first, by steps of age: of these the network with the most loses the
oldest connection of its peer with the most.

So one address, one network of many addresses and many networks of one address each only lose their own connections. A
fixed number per address would hit a site whose agents connect through one router.

A connection is counted as soon as it is accepted: asyncio reports a TLS connection only after its handshake, and one
without a handshake would never be counted.
"""

import contextlib
import socket
import struct
import time
from collections.abc import Callable, Hashable
from functools import lru_cache
from ipaddress import IPv6Address
from itertools import pairwise
from typing import Any, Final, Protocol

from gpuwaste.net.addresses import ip_address
from gpuwaste.net.peers import peer_uid

AGES_S: Final = (0.25, 1.0, 4.0)  # the first is far longer than a request takes that is sent at once
BACKLOG: Final = 128  # connections that the kernel queues for us, at least
_NO_LINGER: Final = struct.pack("ii", 1, 0)
_IPV6_NETWORK_B: Final = 8  # a /64: one host may have all of it
_QUOTA: Final = 1 / 8  # of all places, for the old connections of one network
_MOST_OF_ALL: Final = 1 / 2


class Waiting(Protocol):
    """A connection that can be cut off."""

    def cut_off(self) -> None:
        """End it at once, without an answer."""
        ...


class ConnectionLimiter:
    """At most `most` waiting connections; for one thread."""

    def __init__(self, most: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self.cut = 0  # connections that were closed
        self._most = most
        self._now_s = now_s
        self._groups = [_Group() for _ in (0, *AGES_S)]  # by steps of age, the youngest first
        self._networks = _Ranking()

    def __len__(self) -> int:
        return sum(map(len, self._groups))

    def wait_for(self, peer: Hashable, connection: Waiting) -> None:
        """Count a connection whose request is incomplete; one that is already counted keeps its age."""
        if any(connection in group.since_s for group in self._groups):
            return
        self._groups[0].add(peer, connection, self._now_s())
        self._networks.change(network_of(peer), 1)
        if len(self) > self._most:
            self._age()
            peer, connection = self._choice()
            self.have(peer, connection)
            self.cut += 1
            connection.cut_off()

    def have(self, peer: Hashable, connection: Waiting) -> None:
        """Drop a connection whose request is complete, or that is closed."""
        for group in self._groups:
            if connection in group.since_s:
                group.remove(peer, connection)
                self._networks.change(network_of(peer), -1)

    def _choice(self) -> tuple[Hashable, Waiting]:
        """Return the connection to close, with its peer."""
        network = self._networks.first()
        share = self._networks.greatest / self._most
        old_first = self._groups[::-1]
        payers = old_first if share > _MOST_OF_ALL else old_first[:-1] if share > _QUOTA else []
        for group in payers:
            if (found := group.of(network)) is not None:
                return found
        group = next(group for group in old_first if len(group))
        if group is self._groups[0]:  # all are young: a request that was sent at once is never the oldest
            connection, (peer, _) = next(iter(group.since_s.items()))
            return peer, connection
        return group.of_busiest()

    def _age(self) -> None:
        """Move connections that have become older to the next group; each moves once per step."""
        now_s = self._now_s()
        for (young, old), age_s in zip(pairwise(self._groups), AGES_S, strict=True):
            while young.since_s:
                connection, (peer, since_s) = next(iter(young.since_s.items()))
                if now_s - since_s < age_s:
                    break
                young.remove(peer, connection)
                old.add(peer, connection, since_s)


class _Group:
    """Connections by network and peer; finds the one with the most without a scan."""

    def __init__(self) -> None:
        self.since_s: dict[Waiting, tuple[Hashable, float]] = {}  # peer and when it began to wait, the oldest first
        self._networks = _Ranking()
        self._peers: dict[Hashable, _Ranking] = {}  # by network
        self._held: dict[Hashable, dict[Waiting, None]] = {}  # by peer, the oldest first

    def __len__(self) -> int:
        return len(self.since_s)

    def add(self, peer: Hashable, connection: Waiting, since_s: float) -> None:
        """Count a connection that is not counted."""
        network = network_of(peer)
        self.since_s[connection] = (peer, since_s)
        self._held.setdefault(peer, {})[connection] = None
        self._peers.setdefault(network, _Ranking()).change(peer, 1)
        self._networks.change(network, 1)

    def remove(self, peer: Hashable, connection: Waiting) -> None:
        """Drop a connection that is counted."""
        network = network_of(peer)
        del self.since_s[connection]
        del self._held[peer][connection]
        if not self._held[peer]:
            del self._held[peer]
        self._peers[network].change(peer, -1)
        if not self._peers[network]:
            del self._peers[network]
        self._networks.change(network, -1)

    def of(self, network: Hashable) -> tuple[Hashable, Waiting] | None:
        """Return the network's peer with the most connections and its oldest one; None where the network has none."""
        if network not in self._peers:
            return None
        peer = self._peers[network].first()
        return peer, next(iter(self._held[peer]))

    def of_busiest(self) -> tuple[Hashable, Waiting]:
        """Return the same for the network with the most connections here; there must be one."""
        found = self.of(self._networks.first())
        assert found is not None  # noqa: S101 a network without connections has no rank
        return found


class _Ranking:
    """Counts by key, and the key with the greatest count: changes by one and queries take constant time."""

    def __init__(self) -> None:
        self._count: dict[Hashable, int] = {}
        self._keys: dict[int, dict[Hashable, None]] = {}  # by count
        self.greatest = 0

    def __len__(self) -> int:
        return len(self._count)

    def change(self, key: Hashable, by: int) -> None:
        """Add 1 or -1 to a key's count."""
        before = self._count.get(key, 0)
        after = before + by
        if before:
            del self._keys[before][key]
            if not self._keys[before]:
                del self._keys[before]
        if after:
            self._count[key] = after
            self._keys.setdefault(after, {})[key] = None
        else:
            del self._count[key]
        if after > self.greatest or self.greatest not in self._keys:
            self.greatest = after

    def first(self) -> Hashable:
        """Return the key with the greatest count; of several the one that has had it longest."""
        return next(iter(self._keys[self.greatest]))


@lru_cache(maxsize=4096)
def network_of(peer: Hashable) -> Hashable:
    """Return the /24 or /64 of an address; a peer that is not an address (a uid) is a network of its own."""
    if not isinstance(peer, str):
        return peer
    address = ip_address(peer)
    if address is None:
        return peer
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is None:
            return address.packed[:_IPV6_NETWORK_B]
        address = address.ipv4_mapped
    return address.packed[:-1]


class Listener(socket.socket):
    """Keeps the longest queue that it had: asyncio uses one number for that queue and for what it accepts at once."""

    queue: int = 0

    def listen(self, backlog: int = 0, /) -> None:
        """Listen, with a queue that is never shorter than before."""
        self.queue = max(backlog, self.queue)
        super().listen(self.queue)


class LimitedListener(Listener):
    """Counts each connection as waiting until it is closed, or `arrived` is called for it; for one event loop."""

    limiter: ConnectionLimiter
    _taken: dict[int, "_Connection"]

    @classmethod
    def of(cls, listener: socket.socket, limiter: ConnectionLimiter) -> "LimitedListener":
        """Take over a listening socket; the given one is closed."""
        new = cls(listener.family, listener.type, listener.proto, fileno=listener.detach())
        new.limiter, new._taken = limiter, {}
        new.queue = max(BACKLOG, getattr(listener, "queue", 0))
        return new

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection and its address."""
        plain, address = super().accept()
        connection = _Connection(plain.family, plain.type, plain.proto, fileno=plain.detach())
        connection.listener = self
        uid = peer_uid(connection)
        connection.peer = address[0] if uid is None else uid
        self._taken[connection.fileno()] = connection
        self.limiter.wait_for(connection.peer, connection)
        return connection, address

    def arrived(self, number: int) -> bool:
        """Stop counting the connection with this descriptor; return False for one that had been cut off."""
        connection = self._taken.pop(number, None)
        if connection is None:
            return True
        self.limiter.have(connection.peer, connection)
        return not connection.was_cut


class _Connection(socket.socket):
    listener: LimitedListener
    peer: Hashable
    was_cut = False

    def cut_off(self) -> None:
        """End it at once: its reader gets the data received so far, then the end, and closes it."""
        self.was_cut = True
        with contextlib.suppress(OSError):
            self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it and stop counting it."""
        self.listener.arrived(self.fileno())
        super().close()
