"""How many examples Hypothesis draws: a few in `make unit` and `make test`, which are run often; else all of them.

Each run draws others; `make thorough` draws all.
"""

from typing import Final

from hypothesis import settings

_FEW: Final = 10
settings.register_profile("full", deadline=None)  # a busy host is no failure
settings.register_profile("unit", deadline=None, max_examples=_FEW)
settings.load_profile("full")


def few() -> bool:
    """Return whether this run is a quick one: tests of growth then stop at smaller texts."""
    return settings.get_current_profile_name() == "unit"


def examples(count: int, least: int = _FEW) -> int:
    """Return how many examples a test draws: `count`, with --hypothesis-profile unit at most `least`."""
    return min(count, least) if few() else count
