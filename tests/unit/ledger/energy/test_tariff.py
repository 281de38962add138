"""What a tariff makes of energy: by hand-computed bills, and by files that are wrong in every way."""

import os
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from gpuwaste.core.errors import ParseError
from gpuwaste.core.site_config import EnergyConfig
from gpuwaste.core.units import J_PER_KWH
from gpuwaste.ledger.energy import site_tariff
from gpuwaste.ledger.energy.site_tariff import parse_hours, read_tariff
from gpuwaste.ledger.energy.tariff import Bill, DrawnEnergy, EnergyPrice, Tariff

HOUR = 1_774_746_000  # 2026-03-29T01:00:00Z, when clocks in Europe are put forward
HEADER = "hour,price_per_kwh,g_co2e_per_kwh\n"


def numbers(bill: Bill | None) -> tuple[float | None, ...]:
    assert bill is not None
    return astuple(bill)


def rates(text: str) -> dict[int, EnergyPrice]:
    return parse_hours(text.encode(), "f.csv")[1]


def test_a_bill_by_numbers() -> None:
    """10 kWh of GPUs at PUE 1.2 are 12 kWh: 3 EUR at 0.25, 4.8 kg of CO2e at 400 g."""
    mean = Tariff(EnergyPrice(0.25, 400.0), 1.2).over(None)
    assert numbers(mean.bill(10 * J_PER_KWH)) == pytest.approx((10.0, 12.0, 3.0, 4.8))
    assert mean.bill(0.0) == Bill(0.0, 0.0, 0.0, 0.0)
    assert mean.bill(None) is None


def test_without_prices_there_are_kilowatt_hours_alone() -> None:
    """The defaults say nothing of money and CO2e: not known, and not 0."""
    assert read_tariff(EnergyConfig()).over(None).bill(J_PER_KWH) == Bill(1.0, 1.0, None, None)


def test_hours_weigh_by_what_was_drawn_in_them() -> None:
    """3 kWh at 0.10 and 1 kWh at 0.50 cost 0.80; CO2e by the flat number, which the file does not have."""
    tariff = Tariff(
        EnergyPrice(9.0, 100.0), hours={HOUR: EnergyPrice(0.1), HOUR + 3600: EnergyPrice(0.5)}, priced_by_hour=True
    )
    drawn = DrawnEnergy(4 * J_PER_KWH, (3 * 0.1 + 0.5) * J_PER_KWH, 0.0, 0, 2)
    bill = tariff.over(drawn).bill(4 * J_PER_KWH)
    assert numbers(bill) == pytest.approx((4.0, 4.0, 0.8, 0.4))


def test_an_hour_without_a_price_makes_the_cost_unknown_and_is_counted() -> None:
    """No cost is given where one hour has no price: it is not guessed from other hours or from the flat price."""
    tariff = Tariff(
        EnergyPrice(9.0, 9.0), hours={HOUR: EnergyPrice(0.1, None)}, priced_by_hour=True, carbon_by_hour=True
    )
    mean = tariff.over(DrawnEnergy(3.0, 0.1, 0.0, 2, 3))
    assert (mean.rate, mean.hours_without_price, mean.hours_without_carbon) == (EnergyPrice(None, None), 2, 3)
    assert mean.bill(J_PER_KWH) == Bill(1.0, 1.0, None, None)


def test_energy_of_unknown_hours_has_no_cost() -> None:
    """Where nobody knows when energy was drawn, a tariff by hour gives no price."""
    tariff = Tariff(hours={HOUR: EnergyPrice(0.1)}, priced_by_hour=True)
    assert tariff.over(DrawnEnergy()).rate == tariff.over(None).rate == EnergyPrice()


def test_queries_get_the_hours_of_a_window_with_their_rates() -> None:
    """Hours from the first one on, without that at which the window ends; a value that is not known is None."""
    tariff = Tariff(hours={HOUR: EnergyPrice(0.1), HOUR + 3600: EnergyPrice(None, 4.0), HOUR + 7200: EnergyPrice(0.3)})
    found = tariff.between(HOUR, HOUR + 7200)
    assert found == {"hours": [HOUR, HOUR + 3600], "price_per_kwh": [0.1, None], "g_co2e_per_kwh": [None, 4.0]}


@pytest.mark.parametrize("text", ["2026-03-29T01:00:00Z", "2026-03-29 03:00+02:00", "2026-03-28T20:00:00-05:00"])
def test_an_hour_may_have_any_offset(text: str) -> None:
    """The same hour with the offset of its clock, and negative prices, which markets have."""
    assert rates(f"{HEADER}{text},-0.02,\n") == {HOUR: EnergyPrice(-0.02, None)}


def test_the_hour_that_autumn_has_twice_is_two_hours() -> None:
    """2 o'clock in summer time and 2 o'clock in winter time are two hours, 3600 s apart."""
    found = rates(f"{HEADER}2026-10-25T02:00+02:00,1,\n2026-10-25T02:00+01:00,2,\n")
    assert list(found.values()) == [EnergyPrice(1.0), EnergyPrice(2.0)]
    assert list(found) == [1_792_886_400, 1_792_890_000]


def test_columns_in_any_order_and_a_spreadsheet_s_mark() -> None:
    """A byte order mark, spaces, empty lines and CRLF are no faults; a column that is missing is no value."""
    found = parse_hours("\ufeffg_co2e_per_kwh, hour\r\n\r\n 380 , 2026-03-29T01:00Z\r\n".encode(), "f.csv")
    assert found == (frozenset({"g_co2e_per_kwh"}), {HOUR: EnergyPrice(None, 380.0)})


GOOD = f"{HEADER}2026-03-29T01:00Z,0.2,300\n"
BAD = {
    "empty": (b"", "line 1: expected the columns hour"),
    "blank": (b"\n\n", "line 1: expected the columns hour"),
    "header alone": (HEADER.encode(), "no hour in it"),
    "binary": (b"\x7fELF\0\0", "a binary file"),
    "not utf-8": (GOOD.encode() + b"2026-03-29T02:00Z,0.2,\xff\n", "line 3 is not UTF-8"),
    "truncated": (GOOD.encode()[:-2], "the last line has no newline"),
    "field missing": (
        b"hour,price_per_kwh\n2026-03-29T01:00Z\n",
        "line 2: expected 2 fields separated by commas, found 1",
    ),
    "semicolons": (b"hour;price_per_kwh\n2026-03-29T01:00Z;1\n", "line 1: expected the columns"),
    "decimal comma": (HEADER.encode() + b"2026-03-29T01:00Z,0,2,300\n", "line 2: expected 3 fields"),
    "other column": (b"hour,price\n", "line 1: expected the columns"),
    "column twice": (b"hour,price_per_kwh,price_per_kwh\n", "line 1: expected the columns"),
    "no offset": (HEADER.encode() + b"2026-10-25T02:00,1,1\n", "line 2: '2026-10-25T02:00' has no offset"),
    "half an hour": (HEADER.encode() + b"2026-10-25T02:00+05:30,1,1\n", "line 2: .* is not the beginning of an hour"),
    "no time": (HEADER.encode() + b"yesterday,1,1\n", "line 2: 'yesterday' is no time"),
    "far": (HEADER.encode() + b"0001-01-01T00:00+23:00,1,1\n", "out of range"),
    "duplicate": (f"{GOOD}2026-03-29T03:00+02:00,1,1\n".encode(), "line 3: the same hour in UTC as line 2"),
    "nan": (HEADER.encode() + b"2026-03-29T01:00Z,nan,1\n", "line 2: price_per_kwh 'nan': expected a number"),
    "negative carbon": (HEADER.encode() + b"2026-03-29T01:00Z,1,-1\n", "line 2: g_co2e_per_kwh '-1'"),
    "large": (HEADER.encode() + b"2026-03-29T01:00Z,1e300,1\n", "line 2: price_per_kwh '1e300'"),
    "quote": (HEADER.encode() + b'2026-03-29T01:00Z,"1,1\n', "line 2: .*expected CSV"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_with_its_line(name: str) -> None:
    """Each fault gives one line of text with the place and what to do."""
    data, words = BAD[name]
    with pytest.raises(ParseError, match=words) as refused:
        parse_hours(data, "f.csv")
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("f.csv: ")


def test_too_many_hours_and_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without an end costs no memory: it is read up to a limit, of bytes and of hours."""
    monkeypatch.setattr(site_tariff, "MAX_HOURS", 1)
    with pytest.raises(ParseError, match="line 3: more than 1 hours"):
        rates(f"{GOOD}2026-03-29T02:00Z,1,1\n")
    path = tmp_path / "hours.csv"
    path.write_bytes(b"")
    os.truncate(path, site_tariff.MAX_B + 1)
    with pytest.raises(ParseError, match="too large for a tariff by hour"):
        read_tariff(EnergyConfig(hours_file=str(path)))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (EnergyConfig(pue=0.9), r"\[energy\] pue 0.9: set it to 1 to 10"),
        (EnergyConfig(pue=11), r"\[energy\] pue 11"),
        (EnergyConfig(currency=""), r"\[energy\] currency ''"),
        (EnergyConfig(currency="\x1b[31m"), r"\[energy\] currency"),
        (EnergyConfig(price_per_kwh=1e7), r"\[energy\] price_per_kwh 1e\+07: write 1e\+06 at most"),
        (EnergyConfig(g_co2e_per_kwh=1e6), r"\[energy\] g_co2e_per_kwh 1e\+06"),
        (
            EnergyConfig(hours_file="/nonexistent/hours.csv"),
            r"\[energy\] hours_file: /nonexistent/hours.csv: cannot be",
        ),
    ],
)
def test_a_bad_key_is_named(config: EnergyConfig, words: str) -> None:
    """Each key that no site can mean is refused by its name."""
    with pytest.raises(ParseError, match=words):
        read_tariff(config)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """A path that is no plain file is refused at once."""
    os.mkfifo(tmp_path / "hours.csv")
    with pytest.raises(ParseError, match=r"\.csv: cannot be read: "):
        read_tariff(EnergyConfig(hours_file=str(tmp_path / "hours.csv")))


@settings(max_examples=examples(200))
@given(st.binary(max_size=300), st.booleans())
def test_whatever_a_file_holds_there_is_a_tariff_or_one_line(data: bytes, headed: bool) -> None:
    """No bytes raise anything but ParseError."""
    said = ""
    try:
        parse_hours(HEADER.encode() + data if headed else data, "f.csv")
    except ParseError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1
