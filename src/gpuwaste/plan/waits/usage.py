"""How much users and accounts have used lately: what fair share takes from them, decayed by half each week.

Slurm's own usage decays alike (PriorityDecayHalfLife, 7 days by default); its priorities are not in a job history.
"""

from collections.abc import Hashable
from typing import Final

HALF_LIFE_S: Final = 7 * 86400.0


class Usage:
    """Decayed processor-seconds by key; feed `add` in the order of the ends."""

    def __init__(self) -> None:
        self._of: dict[Hashable, tuple[int, float]] = {}

    def add(self, key: Hashable, now: int, amount: float) -> None:
        """Take what a job used that ends now."""
        self._of[key] = (now, self.at(key, now) + amount)

    def at(self, key: Hashable, now: int) -> float:
        """Return what a key has used, decayed until now."""
        then, amount = self._of.get(key, (now, 0.0))
        return float(amount * 0.5 ** (max(now - then, 0) / HALF_LIFE_S))
