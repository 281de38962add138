"""How far the history is known: on the steady clock, so that a step of the wall clock ages nothing."""

from typing import Self

from gpuwaste.advisor.advisor_ports import AdvisorPorts
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts, Reloads


class Freshness(Part):
    """Written by the loop when the last event of an answer has been applied."""

    def __init__(self, clock: Clock, stale_s: float) -> None:
        self._clock = clock
        self.stale_s = stale_s
        self._current_us: int | None = None

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor."""
        return cls(parts.get(AdvisorPorts).clock, parts.get(Config).advisor.stale_s)

    @property
    def reloads(self) -> Reloads:
        """From which age on the history is too old."""
        return {("advisor.stale_s",): lambda c: setattr(self, "stale_s", c.advisor.stale_s)}

    def current(self, mono_us: int) -> None:
        """Note that everything up to an instant of the steady clock is known."""
        if self._current_us is None or mono_us > self._current_us:
            self._current_us = mono_us

    def age_us(self) -> int | None:
        """Return how old the newest knowledge is, None where there is none."""
        return None if self._current_us is None else max(0, self._clock.mono_us() - self._current_us)

    def as_of(self) -> int:
        """Return the UTC second up to which the history is known, 0 for none."""
        age = self.age_us()
        return 0 if age is None else (self._clock.utc_us() - age) // 1_000_000

    @property
    def stale(self) -> bool:
        """Whether the history is too old to speak of."""
        age = self.age_us()
        return age is None or age > self.stale_s * 1e6
