"""How an instant of the next days is printed."""

from datetime import datetime
from typing import Final

_WEEK_DAYS: Final = 7


def instant_words(then: datetime, now: datetime) -> str:
    """Return an instant as Slurm's relative times have it: 14:30 today, `Tue 14:30` within a week, else `3 Dec`."""
    days = (then.date() - now.date()).days
    if days == 0:
        return then.strftime("%H:%M")
    return then.strftime("%a %H:%M") if 0 < days < _WEEK_DAYS else f"{then.day} {then:%b}"
