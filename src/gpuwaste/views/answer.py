"""Answer: what a view found, before it is a document."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gpuwaste.show.chart import Chart
from gpuwaste.show.view_document import Cell, Column
from gpuwaste.show.view_facts import ViewFacts

MAX_ROWS: Final = 200


@dataclass(slots=True)
class Answer:
    """What a view found."""

    facts: ViewFacts
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    charts: Sequence[Chart]
    notes: Sequence[str]
    rows_left_out: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
