"""Which hours of the past runs have changed in: what is summed up of other hours still stands."""

from collections.abc import Iterable

from gpuwaste.core.units import HOUR_S



class Touched:
    """Counts the changes of runs, and for each hour of UTC in which a run was submitted, started or ended the last.

    It begins anew with each process, as what is kept by it does. For any thread: who notes holds the write lock.
    """

    def __init__(self) -> None:
        self._changes = 0
        self._hours: dict[int, int] = {}

    def note(self, times: Iterable[int | None]) -> None:
        """Note the times of runs that changed, before and after, once the change is committed."""
        self._changes += 1
        for hour in {time // HOUR_S for time in times if time is not None}:
            self._hours[hour] = self._changes

    def last(self, start: int, end: int) -> int:
        """Return the number of the last change of a run with a time in [start, end), or in an hour that it cuts."""
        known = self._hours
        return max((known.get(hour, 0) for hour in range(start // HOUR_S, -(-end // HOUR_S))), default=0)
