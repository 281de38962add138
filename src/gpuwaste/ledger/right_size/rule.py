"""The rule of the right size: from the peaks of past runs to a bound of the next peak, the chance that it is exceeded.

The growth of a run is its peak over the highest of the last such jobs that had ended when it was submitted, up to
WINDOW of them. The growths of all jobs of a cluster whose peaks varied as much (STEADY) are pooled, and the chance
that the next run needs more than a size follows by split conformal prediction (Vovk, Gammerman and Shafer 2005; Lei
et al. 2018), in classes (Mondrian): of n growths, e exceed the size over the highest peak; the chance is at most (e +
1) / (n + 1), while the next growth is exchangeable with them. Growths are taken as of the submission because jobs
come in bursts: all runs of a burst with larger data exceed the peaks before it.

A run cannot use more than it was given: its growth is cut at what it was given over the highest peak before it. Only
the growths that could have exceeded the ratio count, in n as in e. So nothing is proposed on fewer than 99 of them: the
chance would be above MAX_CHANCE.

The slowdown follows from the share of time that a GPU was busy, and how much of it was busy then; see `slowdown`.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple, Self

MIN_RUNS: Final = 5
WINDOW: Final = 20
MAX_CHANCE: Final = 0.01
MAX_SLOWDOWN: Final = 1.25
STEADY: Final = (1.05, 1.25, 2.0)
"""Classes of jobs by the highest of the last peaks over their median."""


class Peak(NamedTuple):
    """The most that one run used of a resource, and what it was given, in the same unit; UTC seconds."""

    used: float
    given: float
    submit: float = 0.0
    end: float = 0.0


class Growth(NamedTuple):
    """How a run grew: the class of the peaks before it, the growth, and the largest that it could have had."""

    steadiness: int
    ratio: float
    room: float


class Growths:
    """The growths of runs by class."""

    def __init__(self, grown: Iterable[Growth] = ()) -> None:
        self._ratios: list[list[float]] = [[] for _ in range(len(STEADY) + 1)]
        self._rooms: list[list[float]] = [[] for _ in range(len(STEADY) + 1)]
        for one in grown:
            self._ratios[one.steadiness].append(one.ratio)
            self._rooms[one.steadiness].append(max(one.ratio, one.room))
        for values in (*self._ratios, *self._rooms):
            values.sort()
        self._bounds: dict[tuple[int, float], float | None] = {}  # asked for each name of a site

    @classmethod
    def of(cls, jobs: Iterable[Sequence[Peak]]) -> Self:
        """Return the growths of all runs, each of `jobs` the peaks of such jobs in order of their end."""
        return cls(grown for peaks in jobs for grown in growths(peaks))

    def add(self, grown: Growth) -> None:
        """Add the growth of one more run."""
        self._bounds.clear()
        insort(self._ratios[grown.steadiness], grown.ratio)
        insort(self._rooms[grown.steadiness], max(grown.ratio, grown.room))

    def chance(self, steadiness: int, ratio: float) -> float:
        """Return the chance, at most, that the next run grows by more than `ratio`; 1 where no run tells."""
        ratios, rooms = self._ratios[steadiness], self._rooms[steadiness]
        exceeded, could = len(ratios) - bisect_right(ratios, ratio), len(rooms) - bisect_left(rooms, ratio)
        return (exceeded + 1) / (could + 1)

    def bound(self, steadiness: int, chance: float = MAX_CHANCE) -> float | None:
        """Return the smallest growth, at least 1, that the next run exceeds with at most this chance; None: unknown."""
        if (steadiness, chance) not in self._bounds:
            self._bounds[steadiness, chance] = self._bound(steadiness, chance)
        return self._bounds[steadiness, chance]

    def _bound(self, steadiness: int, chance: float) -> float | None:
        found = None
        for ratio in reversed(self._ratios[steadiness]):
            if self.chance(steadiness, ratio) > chance:
                break
            found = ratio
        return None if found is None else max(found, 1.0)


_NO_GROWTHS: Final = Growths()


def growths(peaks: Sequence[Peak]) -> list[Growth]:
    """Return the growth of each run that had MIN_RUNS runs before it; the peaks are in order of their end."""
    ends = [peak.end for peak in peaks]
    found = (growth(peaks[: bisect_right(ends, peak.submit)], peak) for peak in peaks)
    return [each for each in found if each is not None]


def growth(before: Sequence[Peak], peak: Peak) -> Growth | None:
    """Return the growth of a run over those that had ended; None for too few, as `need_of`."""
    need = need_of(before, _NO_GROWTHS)
    return None if need is None else Growth(need.steadiness, peak.used / need.highest, peak.given / need.highest)


@dataclass(frozen=True, slots=True)
class Need:
    """What the next run of such jobs needs of one resource, from the last runs."""

    runs: int
    highest: float
    steadiness: int
    growths: Growths

    def chance(self, size: float) -> float:
        """Return the chance, at most, that the next run needs more than `size`."""
        return self.growths.chance(self.steadiness, size / self.highest)

    def bound(self, chance: float = MAX_CHANCE) -> float | None:
        """Return what the next run exceeds with at most this chance; None where too few runs tell."""
        ratio = self.growths.bound(self.steadiness, chance)
        return None if ratio is None else self.highest * ratio


def need_of(peaks: Sequence[Peak], growths: Growths) -> Need | None:
    """Return the need of the next run after these; None for fewer than MIN_RUNS, or none that used anything."""
    last = [peak.used for peak in peaks[-WINDOW:]]
    highest = max(last, default=0.0)
    if len(last) < MIN_RUNS or highest <= 0:
        return None
    middle = median(last)
    return Need(len(last), highest, bisect_left(STEADY, highest / middle) if middle > 0 else len(STEADY), growths)


@dataclass(frozen=True, slots=True)
class GpuActivity:
    """How busy the busiest GPU of a run was, each a share from 0 to 1."""

    busy: float  # of the time, with a kernel
    width: float  # of the multiprocessors while busy, else of the power limit; 1 where neither is known
    moved: float | None  # of the memory bandwidth while busy


@dataclass(frozen=True, slots=True)
class GpuSpeed:
    """Peak arithmetic and memory bandwidth of a smaller GPU over those of the larger one."""

    compute: float
    bandwidth: float


def slowdown(activity: GpuActivity, speed: GpuSpeed) -> float:
    """Return the expected run time on the smaller GPU over that on the larger one.

    Busy time gets longer by the factor by which the part of the larger GPU that was busy exceeds the smaller one: that
    of arithmetic or of memory bandwidth, whichever is larger. Other time stays. It is a figure from data sheets, no
    measurement.
    """
    moved = activity.width if activity.moved is None else activity.moved
    longer = max(1.0, _over(activity.width, speed.compute), _over(moved, speed.bandwidth))
    return 1.0 - activity.busy + activity.busy * longer


def _over(used: float, available: float) -> float:
    return used / available if available > 0 else math.inf
