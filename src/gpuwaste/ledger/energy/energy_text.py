"""The parts of a report about energy."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from gpuwaste.ledger.energy.energy_types import EnergyCost
from gpuwaste.ledger.energy.energy_words import energy_number, energy_titles, energy_words
from gpuwaste.ledger.reports.report_types import AccountRow, DayRow
from gpuwaste.show.layout import Look, bullet
from gpuwaste.show.terminal_cells import UNKNOWN, fit

_DAYS: Final = 31
_ACCOUNTS: Final = 20
_ACCOUNT: Final = 32  # characters of a name


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


def energy_account_lines(accounts: Sequence[AccountRow], look: Look) -> list[str]:
    """Return the energy of each account and its cost, the largest first; nothing where none was measured."""
    headers = energy_headers(row.energy for row in accounts)
    if not headers:
        return []
    known = sorted(accounts, key=lambda row: (-(row.energy_j or 0.0), row.account))
    cells = [
        (str(row.jobs), *energy_cells(row.energy, headers), fit(row.account, _ACCOUNT)) for row in known[:_ACCOUNTS]
    ]
    lines = look.heading("Energy by account")
    lines += look.table(("JOBS", *headers, "ACCOUNT"), cells, frozenset({len(headers) + 1}))
    more = len(known) - _ACCOUNTS
    return [*lines, f"  ... and {more} more accounts (--table accounts --csv prints all)"] if more > 0 else lines


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
