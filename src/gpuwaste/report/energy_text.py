"""The part of a report about energy."""

from gpuwaste.documents.energy_types import EnergyCost
from gpuwaste.documents.energy_words import energy_words
from gpuwaste.report.layout import Look, bullet


def energy_lines(energy: EnergyCost | None, look: Look) -> list[str]:
    """Return what the energy of GPUs costs; nothing where none was measured."""
    rows = energy_words(energy)
    if not rows:
        return []
    return [*look.heading("Energy of the GPUs"), *(line for name, value in rows for line in bullet(f"{name}: {value}"))]
