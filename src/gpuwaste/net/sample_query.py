"""The hub's request to an agent for the samples of a run: its target, and the limits of the answer."""

import re
from dataclasses import astuple, dataclass
from typing import Final, Self

SAMPLES_PATH: Final = "/v1/samples"
MOST_POINTS: Final = 2000  # of a series
MOST_ANSWER_B: Final = 2 << 20  # packed
MOST_UNPACKED_B: Final = 4 << 20
_TARGET: Final = re.compile(
    re.escape(SAMPLES_PATH) + r"\?node=([A-Za-z0-9_.\-]{1,128})&job=(\d{1,10})&start=(\d{1,12})"
    r"&since_us=(\d{1,17})&until_us=(\d{1,17})&points=(\d{1,4})",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class RunWindow:
    """A run, a start and an end (UTC microseconds), and the largest number of values per series."""

    job_id: int
    start: int
    since_us: int
    until_us: int
    points: int


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A window of a run on one node: the credential for one node is not valid on another."""

    node: str
    window: RunWindow

    @property
    def target(self) -> str:
        """The request's target; every character of it is signed."""
        asked = self.window
        return (
            f"{SAMPLES_PATH}?node={self.node}&job={asked.job_id}&start={asked.start}"
            f"&since_us={asked.since_us}&until_us={asked.until_us}&points={asked.points}"
        )

    @classmethod
    def from_target(cls, target: str) -> Self | None:
        """Read a target; None where it is not such a request."""
        found = _TARGET.fullmatch(target)
        if found is None:
            return None
        window = RunWindow(*map(int, found.groups()[1:]))
        fits = 1 <= window.points <= MOST_POINTS and window.since_us < window.until_us
        return cls(found[1], window) if fits else None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The window's numbers, for a command line."""
        return astuple(self.window)
