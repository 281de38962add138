"""Collectors are found by their files."""

from pathlib import Path

import pytest
from tests.unit.agent.fakes import FakeClock

from gpuwaste.agent.collectors import CollectorSettings, create_collectors, known_collectors
from gpuwaste.core.errors import ConfigError

SETTINGS = CollectorSettings(FakeClock(), "gpu1", Path("/none"), "http://127.0.0.1:1", Path("/none"), Path("/none"))


def test_every_file_without_an_underscore_is_a_collector() -> None:
    """The registry knows what lies in the folder, and each can be created under its name."""
    assert known_collectors() == ["host", "nvml", "pcp"]
    made = create_collectors(known_collectors(), SETTINGS)
    assert [c.name for c in made.gpu] == ["nvml", "pcp"]
    assert [c.name for c in made.host] == ["host"]


def test_the_order_is_the_configured_one() -> None:
    """GPU collectors come in order of preference."""
    assert [c.name for c in create_collectors(["pcp", "nvml"], SETTINGS).gpu] == ["pcp", "nvml"]


@pytest.mark.parametrize("name", ["dcgm", "_cgroup", ""])
def test_an_unknown_name_is_refused(name: str) -> None:
    """A name that is no collector is named with those that are."""
    with pytest.raises(ConfigError, match="host, nvml, pcp"):
        create_collectors([name], SETTINGS)
