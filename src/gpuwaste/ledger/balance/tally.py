"""HourTally: sums of GPUs over time, by UTC hour."""

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

HOUR_S: Final = 3600
Key = TypeVar("Key", bound=Hashable)


class HourTally(Generic[Key]):
    """GPU-seconds by the first second of an hour and a key."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, Key], int] = {}

    def add(self, key: Key, start: int, end: int, gpus: int) -> None:
        """Add so many GPUs from `start` to before `end`."""
        if not gpus:
            return
        sums = self.sums
        while start < end:
            hour = start - start % HOUR_S
            until = min(end, hour + HOUR_S)
            place = hour, key
            sums[place] = sums.get(place, 0) + gpus * (until - start)
            start = until
