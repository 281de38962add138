"""Connections whose request is not whole yet: they are free for anybody to open, so they are counted and bounded.

Where there are too many, the peer that has the most of them loses its oldest. A flood from one host, or of one local
user, so pushes out its own connections and nobody else's.
"""

from collections.abc import Hashable
from typing import Protocol


class Waits(Protocol):
    """A connection that can be cut off."""

    def cut_off(self) -> None:
        """End it at once, without an answer."""
        ...


class Patience:
    """At most `most` of them; for one event loop."""

    def __init__(self, most: int) -> None:
        self.cut = 0  # connections that had to go
        self._most = most
        self._count = 0
        self._by_peer: dict[Hashable, dict[Waits, None]] = {}  # the oldest first

    def __len__(self) -> int:
        return self._count

    def wait_for(self, peer: Hashable, connection: Waits) -> None:
        """Count a connection of which something is still to come; one that is counted keeps its age."""
        of_peer = self._by_peer.setdefault(peer, {})
        if connection in of_peer:
            return
        of_peer[connection] = None
        self._count += 1
        if self._count > self._most:
            busiest = max(self._by_peer, key=lambda other: len(self._by_peer[other]))
            oldest = next(iter(self._by_peer[busiest]))
            self.have(busiest, oldest)
            self.cut += 1
            oldest.cut_off()

    def have(self, peer: Hashable, connection: Waits) -> None:
        """Forget a connection whose request is there, or that is gone."""
        of_peer = self._by_peer.get(peer, {})
        if connection in of_peer:
            del of_peer[connection]
            self._count -= 1
            if not of_peer:
                del self._by_peer[peer]
