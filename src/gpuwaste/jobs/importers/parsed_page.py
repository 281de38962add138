"""What a page or a window of accounting gives: runs by their keys, and the rows that cannot be read."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from gpuwaste.core.text import storable
from gpuwaste.jobs.importers.history_store import UNREAD
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.slurm.accounting.sacct import BadRow
from gpuwaste.slurm.run import RunKey
from gpuwaste.store.hub.hub_store import Aside

Notes = Counter[str]  # what a parser counts, by name
KEPT_BAD: Final = 2000  # bad rows of a piece that are kept aside; all are counted


@dataclass(slots=True)
class SortedRows:
    """The rows of a piece of accounting whose first line is `first_line`; a later row of a run replaces an earlier one.

    A row of which a single field cannot be read is a run all the same; `unread` has the first such row of each field.
    """

    first_line: int = 1
    records: dict[RunKey, JobRecord] = field(default_factory=dict)
    bad: list[Aside] = field(default_factory=list)
    bad_count: int = 0
    unread: dict[str, Aside] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def add(self, row: JobRecord | BadRow) -> None:
        """Take in a row."""
        if isinstance(row, JobRecord):
            if row.run_key in self.records:
                self.notes["twice"] += 1
            self.records[row.run_key] = row
            return
        aside = Aside(row.line + self.first_line - 1, storable(row.reason), storable(row.raw))
        if row.field:
            self.notes[UNREAD + row.field] += 1
            self.unread.setdefault(row.field, aside)
            return
        self.bad_count += 1
        if len(self.bad) < KEPT_BAD:
            self.bad.append(aside)
