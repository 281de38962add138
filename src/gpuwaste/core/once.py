"""A trouble that lasts is said once: what the same trouble, again and again, is counted by."""

from dataclasses import dataclass


@dataclass(slots=True)
class Once:
    """One lasting trouble: its words, how often it came in a row, and how often since it was said."""

    words: str = ""
    times: int = 0
    repeats: int = 0
    _said_us: int = 0

    def news(self, words: str, now_us: int = 0, quiet_us: int | None = None) -> bool:
        """Count the trouble; true where it is to be said: a first one, other words, or not said for `quiet_us`."""
        known = self.times > 0 and words == self.words
        self.times += 1
        if known and (quiet_us is None or now_us - self._said_us < quiet_us):
            self.repeats += 1
            return False
        self.words, self.repeats, self._said_us = words, 0, now_us
        return True

    def over(self) -> int:
        """End the trouble; return how often it came, 0 where there was none."""
        times = self.times
        self.words, self.times, self.repeats = "", 0, 0
        return times
