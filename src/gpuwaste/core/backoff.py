"""How long to wait after failures: twice as long each time, up to a bound."""

from typing import Final

_DOUBLINGS: Final = 30  # more than any bound here allows, and far from what a float cannot hold


def backoff_s(failures: int, first_s: float, most_s: float) -> float:
    """Return the seconds to wait: `first_s` after one failure in a row, twice that after two, at most `most_s`."""
    return min(most_s, first_s * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS))
