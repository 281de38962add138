"""Which hours of the past runs have changed in: what was added up of other hours still stands."""

from collections.abc import Iterable
from itertools import count

from gpuwaste.core.units import HOUR_S

Times = tuple[int, int | None, int | None]
"""When a run was submitted, started and ended, UTC seconds."""


class Touched:
    """Numbers the changes of runs, and knows the last of each hour in which a run was submitted, started or ended.

    It begins anew with each process, as does what is kept by it. For any thread.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._hours: dict[int, int] = {}

    def note(self, runs: Iterable[Times]) -> None:
        """Note runs that changed by their times before and after, once the change is committed."""
        hours = {time // HOUR_S for times in runs for time in times if time is not None}
        number = next(self._numbers)
        for hour in hours:
            self._hours[hour] = number

    def last(self, start: int, end: int) -> int:
        """Return the number of the last change of a run with a time in [start, end), or in an hour that an edge cuts.

        Two changes never have the same number.
        """
        hours = self._hours
        return max((hours.get(hour, 0) for hour in range(start // HOUR_S, -(-end // HOUR_S))), default=0)
