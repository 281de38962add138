"""Collectors are found by their files."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.fakes import START_US

from gpuwaste.agent.collectors import COLLECTORS, CollectorSettings, create_collectors
from gpuwaste.core.errors import ConfigError
from gpuwaste.testing.clocks import FakeClock

SETTINGS = CollectorSettings(
    FakeClock(START_US // 1_000_000),
    "gpu1",
    Path("/none"),
    Path("/none"),
    dcgm_url="http://127.0.0.1:9400/metrics",
)


def test_every_file_without_an_underscore_is_a_collector() -> None:
    """The registry knows what lies in the folder, and each can be created under its name."""
    assert list(COLLECTORS) == ["amd", "dcgm", "host", "intel", "nvml", "pcp", "rapl"]
    made = create_collectors(list(COLLECTORS), SETTINGS)
    assert [c.name for c in made.gpu] == ["amd", "intel", "nvml", "pcp"]
    assert [c.name for c in made.host] == ["host"]
    assert [c.name for c in made.profile] == ["dcgm"]
    assert [c.name for c in made.package] == ["rapl"]


def test_the_order_is_the_configured_one() -> None:
    """GPU collectors come in order of preference."""
    assert [c.name for c in create_collectors(["pcp", "nvml"], SETTINGS).gpu] == ["pcp", "nvml"]


@pytest.mark.parametrize("name", ["rocm", "_cgroup", ""])
def test_an_unknown_name_is_refused(name: str) -> None:
    """A name that is no collector is named with those that are."""
    with pytest.raises(ConfigError, match="dcgm, host, intel, nvml, pcp"):
        create_collectors([name], SETTINGS)


@pytest.mark.parametrize("url", ["http://10.0.0.5:9400/metrics", "http://exporter:9400/metrics", "", "http://[::]x/"])
def test_dcgm_s_exporter_is_on_loopback(url: str) -> None:
    """An exporter elsewhere is refused with the usual URL; loopback in any spelling is taken."""
    with pytest.raises(ConfigError, match=r"use http://127\.0\.0\.1:9400/metrics"):
        create_collectors(["dcgm"], replace(SETTINGS, dcgm_url=url))
    for own in ("http://localhost:9400/metrics", "http://[::1]:9400/metrics", "http://127.0.0.2:1/x"):
        assert create_collectors(["dcgm"], replace(SETTINGS, dcgm_url=own)).profile
