"""How many examples Hypothesis draws: all of them, half for `make test`, a few for `make unit`, run between two edits.

Each run draws others, so two runs of `make test` have seen as many as one of plain pytest.
"""

from typing import Final

from hypothesis import settings

_FEW: Final = 10
settings.register_profile("full", deadline=None)  # a busy host is no failure
settings.register_profile("half", deadline=None, max_examples=50)
settings.register_profile("unit", deadline=None, max_examples=_FEW)
settings.load_profile("full")


def few() -> bool:
    """Return whether this run is the quick one: tests of growth then stop at smaller texts."""
    return settings.get_current_profile_name() == "unit"


def examples(count: int, least: int = _FEW) -> int:
    """Return how many examples a test draws: `count` by itself, half, or at most `least` where those are enough."""
    half = settings.get_current_profile_name() == "half"
    return min(count, least) if few() else max(min(count, least), count // 2) if half else count
