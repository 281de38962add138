"""The rate of a counter that comes with its own clock, between two readings."""


class CounterRate:
    """Keeps the last reading of one counter."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None

    @property
    def started(self) -> bool:
        """Whether there was a reading."""
        return self._last is not None

    def since_last(self, value: int, stamp: int) -> float | None:
        """Return growth of the counter per unit of its clock since the last reading.

        None for the first reading, for a clock that did not go on, and for a counter or clock that went back: such a
        reading is where the next one starts.
        """
        last, self._last = self._last, (value, stamp)
        if last is None or stamp <= last[1] or value < last[0]:
            return None
        return (value - last[0]) / (stamp - last[1])
