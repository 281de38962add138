"""What happens to a frame on its way from one port to another: it is cut off, lost, or arrives some time later."""

import heapq
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

_BROADCAST: Final = 1
"""Bit of a frame's first byte: the frame is for several (IEEE 802.3, 3.2.3)."""
MOST: Final = 20_000
"""Frames that may be on their way at the same time; further ones are lost, as in a switch."""


@dataclass
class Rules:
    """Pairs of ports without a connection, and the delay and loss of each frame; both directions are alike."""

    cut: Collection[frozenset[str]] = ()
    delay_s: float = 0.0
    loss: float = 0.0
    """The share of frames that is lost."""


@dataclass
class Way:
    """Frames on their way; deterministic for one `seed` and one order of frames."""

    ports: dict[bytes, str]
    """The port of each MAC address."""
    seed: int = 0
    rules: Rules = field(default_factory=Rules)
    counts: dict[str, int] = field(default_factory=lambda: {"sent": 0, "lost": 0, "cut": 0, "elsewhere": 0})

    def __post_init__(self) -> None:
        """Seed the losses."""
        self._random = random.Random(self.seed)  # noqa: S311 losses, no secrets
        self._waiting: list[tuple[float, int, str, bytes]] = []
        self._number = 0

    def enter(self, frame: bytes, origin: str, now_s: float) -> None:
        """Take a frame that came in at a port."""
        if frame[:1] and frame[0] & _BROADCAST:
            targets = [port for port in self.ports.values() if port != origin]
        else:
            targets = [port for mac, port in self.ports.items() if mac == frame[:6] and port != origin]
            self.counts["elsewhere"] += not targets
        for target in targets:
            if frozenset((origin, target)) in self.rules.cut:
                self.counts["cut"] += 1
            elif self._random.random() < self.rules.loss or len(self._waiting) >= MOST:
                self.counts["lost"] += 1
            else:
                self._number += 1
                heapq.heappush(self._waiting, (now_s + self.rules.delay_s, self._number, target, frame))

    def due(self, now_s: float) -> list[tuple[str, bytes]]:
        """Return the frames that have arrived, in their order, each with its port."""
        found = []
        while self._waiting and self._waiting[0][0] <= now_s:
            _, _, target, frame = heapq.heappop(self._waiting)
            found.append((target, frame))
        self.counts["sent"] += len(found)
        return found

    def rest_s(self, now_s: float) -> float | None:
        """Return how long the next frame is still on its way; None where there is none."""
        return max(0.0, self._waiting[0][0] - now_s) if self._waiting else None
