"""Fixtures of the agent's tests: a clock."""

import pytest
from tests.unit.agent.fakes import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()
