"""Files that each room keeps next to its code, such as queries and templates: found by their paths, listed nowhere."""

from functools import cache
from pathlib import Path

import gpuwaste


@cache
def room_files(*places: str) -> tuple[Path, ...]:
    """Return the files of all rooms that match these globs below gpuwaste/, sorted by path."""
    roots = map(Path, gpuwaste.__path__)
    return tuple(sorted({file for root in roots for place in places for file in root.glob(place)}))
