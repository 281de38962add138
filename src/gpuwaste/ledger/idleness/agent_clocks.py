"""How far each agent's clock is from the hub's, measured at each batch: an agent states its clock when it sends one."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, Self

from gpuwaste.core.clock import Clock
from gpuwaste.core.parts import Part, Parts
from gpuwaste.jobs.host_ports import HostPorts

TRANSIT_MS: Final = 60_000
"""Longest time from an agent's statement of its clock to the hub's reading of its own: its request ends after 20 s.

A clock that is further away than this is not corrected but unknown. So a batch that was on its way for longer makes an
answer too old, never too new, where the two clocks agree.
"""
_STEP_US: Final = 2_000_000  # of the hub's own clock: what was measured before it is void
_MAX_NODES: Final = 16_384  # as many as have a batch age; names come from the agents


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The hub's clock minus an agent's, between `late_ms` - TRANSIT_MS and `late_ms`, milliseconds.

    The time that a batch was on its way is in the difference that was measured, and cannot be told from it.
    """

    late_ms: int

    def earliest_ms(self, agent_ms: int) -> int:
        """Return the earliest time of the hub's clock at which an agent's clock can have shown this."""
        return agent_ms + self.late_ms - TRANSIT_MS

    def latest_ms(self, agent_ms: int) -> int:
        """Return the latest one."""
        return agent_ms + self.late_ms


class AgentClocks(Part):
    """The newest measurement of each node. For any thread.

    It is in memory only: after a start of the hub an agent's clock is unknown until the agent sends a batch.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._found: OrderedDict[str, tuple[int, int]] = (
            OrderedDict()
        )  # the difference, and the hub's own of two clocks

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls(parts.get(HostPorts).clock)

    def note(self, node: str, sent_us: int | None, at_us: int) -> None:
        """Note a batch that arrived at `at_us`, sent at `sent_us` of the agent's clock; None: it does not state it."""
        with self._lock:
            self._found.pop(node, None)
            if sent_us is not None:
                self._found[node] = ((at_us - sent_us) // 1000, at_us - self._clock.mono_us())
            while len(self._found) > _MAX_NODES:
                self._found.popitem(last=False)

    def offset(self, node: str) -> ClockOffset | None:
        """Return the offset of a node's clock; None where it is not known, or too large."""
        with self._lock:
            found = self._found.get(node)
        if found is None:
            return None
        late_ms, own_us = found
        stepped = abs(self._clock.utc_us() - self._clock.mono_us() - own_us) > _STEP_US
        return None if stepped or abs(late_ms) > TRANSIT_MS else ClockOffset(late_ms)
