"""Fixtures of the agent's tests: a clock."""

import pytest
from tests.unit.agent.fakes import START_US

from gpuwaste.testing.clocks import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START_US // 1_000_000)
