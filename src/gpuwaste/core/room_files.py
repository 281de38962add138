"""Files that each room keeps beside its code, such as queries and templates: found by their places, listed nowhere."""

from functools import cache
from pathlib import Path

import gpuwaste


@cache
def room_files(*places: str) -> tuple[Path, ...]:
    """Return the files of all rooms at these places (globs below gpuwaste/), in the order of their paths."""
    roots = map(Path, gpuwaste.__path__)
    return tuple(sorted({file for root in roots for place in places for file in root.glob(place)}))
