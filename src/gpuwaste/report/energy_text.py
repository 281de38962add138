"""The parts of a report about energy."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from gpuwaste.documents.energy_types import EnergyCost
from gpuwaste.documents.energy_words import energy_number, energy_titles, energy_words
from gpuwaste.documents.report_types import DayRow
from gpuwaste.report.cells import UNKNOWN
from gpuwaste.report.layout import Look, bullet

_DAYS: Final = 31


def energy_lines(energy: EnergyCost | None, look: Look) -> list[str]:
    """Return what the energy of GPUs costs; nothing where none was measured."""
    rows = energy_words(energy)
    if not rows:
        return []
    return [*look.heading("Energy of the GPUs"), *(line for name, value in rows for line in bullet(f"{name}: {value}"))]


def energy_headers(energies: Iterable[EnergyCost | None]) -> tuple[str, ...]:
    """Return the headers of the columns of energy and of cost, where any row has one."""
    return tuple(title.upper() for title in energy_titles(energies))


def energy_cells(energy: EnergyCost | None, headers: Sequence[str]) -> tuple[str, ...]:
    """Return a row's cells under such headers."""
    numbers = (None, None) if energy is None else (energy.kwh, energy.cost)
    return tuple(UNKNOWN if value is None else energy_number(value) for value in numbers[: len(headers)])


def energy_day_lines(days: Sequence[DayRow], look: Look) -> list[str]:
    """Return the energy of the runs that ended on each UTC day and its cost; nothing where none was measured."""
    headers = energy_headers(row.energy for row in days)
    if not headers:
        return []
    cells = [
        (
            datetime.fromtimestamp(row.day, UTC).strftime("%Y-%m-%d"),
            str(row.jobs),
            *energy_cells(row.energy, headers),
        )
        for row in days[-_DAYS:]
    ]
    lines = look.heading("Energy by the UTC day on which jobs ended")
    lines += look.table(("DAY", "JOBS", *headers), cells, frozenset({0}))
    earlier = len(days) - _DAYS
    return [*lines, f"  ... and {earlier} earlier days (--table days --csv prints all)"] if earlier > 0 else lines
