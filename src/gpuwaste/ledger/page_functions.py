"""Functions and filters of the ledger for templates: bars and strips of GPU time, causes and fixes as text."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gpuwaste.ledger.day_chart import day_bars
from gpuwaste.ledger.energy.energy_text import energy_number
from gpuwaste.ledger.findings import cause_name
from gpuwaste.ledger.fix_words import page_steps
from gpuwaste.ledger.level_charts import level_bar, strip

FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "cause": cause_name, "energy_number": energy_number, "page_steps": page_steps
}  # fmt: skip
GLOBALS: Final[Mapping[str, Callable[..., Any]]] = {"level_bar": level_bar, "day_bars": day_bars, "strip": strip}
