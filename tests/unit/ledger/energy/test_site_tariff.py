"""The tariff in force follows its file."""

from pathlib import Path

import pytest
from tests.unit.agent.fakes import START_US

from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.ledger.energy.site_tariff import SiteTariff
from gpuwaste.ledger.energy.tariff import EnergyPrice
from gpuwaste.testing.clocks import FakeClock

HOUR = 1_774_746_000
LINE = "hour,price_per_kwh\n2026-03-29T01:00Z,"


def test_a_change_of_the_file_is_read_within_a_minute_and_a_bad_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A new file counts from the next look on; a broken or missing one is logged once, and the earlier prices stay."""
    path, clock = tmp_path / "hours.csv", FakeClock(START_US // 1_000_000)
    path.write_text(f"{LINE}0.2\n")
    site = SiteTariff(EnergyConfig(hours_file=str(path)), clock)
    assert site.current().hours == {HOUR: EnergyPrice(0.2)}
    path.write_text(f"{LINE}0.345\n")
    assert site.current().hours == {HOUR: EnergyPrice(0.2)}
    clock.advance(60)
    assert site.current().hours == {HOUR: EnergyPrice(0.345)}
    for bad in ("rubbish\n", None):
        path.write_text(bad) if bad else path.unlink()
        for _ in range(3):
            clock.advance(60)
            assert site.current().hours == {HOUR: EnergyPrice(0.345)}
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert all("the earlier prices stay in force" in line for line in said)


def test_a_bad_file_at_the_start_leaves_kilowatt_hours(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The hub starts without prices that it cannot read, says so once, and takes the file when it is good."""
    path, clock = tmp_path / "hours.csv", FakeClock(START_US // 1_000_000)
    site = SiteTariff(EnergyConfig(price_per_kwh=0.3, hours_file=str(path)), clock)
    assert site.current().flat == EnergyPrice()
    assert "reports have kilowatt-hours and no costs" in caplog.text
    path.write_text(f"{LINE}0.2\n")
    clock.advance(60)
    assert site.current().hours == {HOUR: EnergyPrice(0.2)}
