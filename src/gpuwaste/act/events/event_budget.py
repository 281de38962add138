"""EventBudget: how many events an inlet may bring a minute and a day; what is more has to wait."""

from gpuwaste.core.clock import Clock
from gpuwaste.core.units import DAY_S, MINUTE_S


class EventBudget:
    """Two buckets that fill steadily; for the thread that has the inlet's lock.

    A bucket holds what its time allows, and may be overdrawn by one batch: then nothing is left until it is filled.
    """

    def __init__(self, per_minute: int, per_day: int, clock: Clock) -> None:
        self._clock = clock
        self._rates = (per_minute / MINUTE_S, per_day / DAY_S)
        self._most = (float(per_minute), float(per_day))
        self._left = list(self._most)
        self._at_us = clock.mono_us()

    def wait_s(self, events: int) -> float:
        """Return the seconds until so many events may come, 0 for now; a full bucket takes any number."""
        now_us = self._clock.mono_us()
        passed_s, self._at_us = (now_us - self._at_us) / 1e6, now_us
        waits = []
        for place, (rate, most) in enumerate(zip(self._rates, self._most, strict=True)):
            self._left[place] = min(most, self._left[place] + passed_s * rate)
            waits.append((min(events, most) - self._left[place]) / rate)
        return max(0.0, *waits)

    def spend(self, events: int) -> None:
        """Note events that came."""
        self._left = [left - events for left in self._left]
