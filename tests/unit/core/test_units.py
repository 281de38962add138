"""Units: GPU-time in one unit that adds up as printed, percent in one way."""

from hypothesis import given
from hypothesis import strategies as st

from gpuwaste.core.units import GpuTimeUnit, SizeUnit, say_hours, say_percent

_AMOUNTS = st.lists(st.integers(0, 10_000_000), min_size=1, max_size=12)


def test_the_largest_amount_chooses_the_unit_and_the_digits() -> None:
    """GPU-minutes only where all are below a GPU-hour; fewer decimals for larger amounts."""
    found = [GpuTimeUnit.of([90.0, largest]).words(90.0) for largest in (600.0, 3600.0, 40_000.0, 4_000_000.0)]
    found.append(GpuTimeUnit.of([0.0, None]).words(0.0))
    assert found == ["1.5 GPU-minutes", "0.03 GPU-hours", "<0.1 GPU-hours", "<1 GPU-hours", "0 GPU-hours"]
    assert GpuTimeUnit.of([4_000_000.0]).words(4_000_000.0) == "1,111 GPU-hours"


@given(_AMOUNTS)
def test_parts_add_up_to_the_total_as_printed(amounts: list[int]) -> None:
    """Whatever the amounts: the printed parts, those too small for a digit as 0, are the printed total."""
    unit = GpuTimeUnit.of([float(sum(amounts))])
    scale = 10**unit.decimals
    printed = unit.parts([float(amount) for amount in amounts], float(sum(amounts)))
    numbers = [0 if cell.startswith("<") else round(float(cell.replace(",", "")) * scale) for cell in printed]
    total = unit.number(float(sum(amounts)))
    assert sum(numbers) == (0 if total.startswith("<") else round(float(total.replace(",", "")) * scale))
    assert all(cell != "0" for cell, amount in zip(printed, amounts, strict=True) if amount)


def test_parts_that_are_not_all_of_the_total_are_rounded_alone() -> None:
    """The rows of one page of a table are not made to add up to the sum of all pages."""
    assert GpuTimeUnit.of([360_000.0]).parts([3600.0, 7400.0], 360_000.0) == ["1.0", "2.1"]


def test_percent_has_a_blank_and_hides_no_small_part() -> None:
    """A little is <1 %, almost all is >99 %; thousands have a comma."""
    assert [say_percent(ratio) for ratio in (0.0, 0.001, 0.4, 0.999, 1.0, 29.33)] == [
        "0 %",
        "<1 %",
        "40 %",
        ">99 %",
        "100 %",
        "2,933 %",
    ]


def test_the_largest_size_chooses_the_unit_of_a_column() -> None:
    """All sizes are in the unit of the largest one; a small one is never printed as 0."""
    unit = SizeUnit.of([3 << 30, 1 << 20, None])
    assert (unit.name, unit.number(3 << 30), unit.number(1 << 20)) == ("GiB", "3.0", "<0.1")
    assert (SizeUnit.of([]).name, SizeUnit.of([512]).number(512)) == ("B", "512")


def test_hours_of_large_sites_have_separators_and_no_decimals() -> None:
    """Up to 999.9 there is one decimal, below an hour two; a change keeps its sign."""
    printed = [say_hours(value) for value in (1_266_503.2, 1000, 999.96, 999.94, 12.34, 1.0, 0.5, 0.001, 0)]
    assert printed == ["1,266,503", "1,000", "1,000", "999.9", "12.3", "1.0", "0.5", "<0.01", "0"]
    assert [say_hours(value) for value in (-1234.5, -12.34)] == ["-1,234", "-12.3"]
