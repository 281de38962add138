"""What the comparisons with real tools share: cases drawn from a printed seed."""

import os
import random

import pytest


@pytest.fixture
def draw() -> random.Random:
    """Return a source of cases whose seed is printed; GPUWASTE_SEED draws the same ones again."""
    seed = int(os.environ.get("GPUWASTE_SEED", random.SystemRandom().randrange(1_000_000)))
    print(f"GPUWASTE_SEED={seed}")  # noqa: T201 - pytest shows it when a test fails
    return random.Random(seed)
