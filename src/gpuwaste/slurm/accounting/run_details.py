"""What a run's steps add up to for analytics, and the words of sacct and of slurmrestd as one."""

from collections.abc import Iterable
from typing import Final

from gpuwaste.slurm.accounting.job import MAX_STEPS, MAX_TEXT, StepRecord
from gpuwaste.slurm.submit.program_tie import tie_of

UNKEPT: Final = "extern"  # holds what prolog and ssh start, none of the job's own work
_NONE: Final = frozenset({"none", "(null)", "n/a"})
# What sacct prints, and slurmrestd's name of the same; the misspelling is that of Slurm up to 23.02.
_FLAGS: Final = {
    "StartRecieved": "StartReceived",
    "START_RECEIVED": "StartReceived",
    "STARTED_ON_SUBMIT": "SchedSubmit",
    "STARTED_ON_SCHEDULE": "SchedMain",
    "STARTED_ON_BACKFILL": "SchedBackfill",
    "SchedNotSet": "",
    "NONE": "",
    "CLEAR_SCHEDULING": "",  # the mask of the three in v0.0.38
}


class StepSums:
    """Sums over a run's steps, and the first ended ones; constant memory, however many there are."""

    def __init__(self) -> None:
        self.kept: list[StepRecord] = []
        self.energy_j: int | None = None
        self.disk_read_b: int | None = None
        self.disk_write_b: int | None = None
        self._numbered: int | None = None

    @property
    def n_steps(self) -> int | None:
        """How many steps srun started; None where no step of any kind is listed."""
        return self._numbered

    def add(
        self, step: str, record: StepRecord | None, energy_j: int | None, read_b: int | None, write_b: int | None
    ) -> None:
        """Add a step; `record` is None where it has not ended."""
        self._numbered = (self._numbered or 0) + step[:1].isdigit()
        # Steps overlap, and each measures its nodes as a whole: their sum counts the same energy several times.
        self.energy_j = max(filter(None, (self.energy_j, energy_j)), default=None)
        self.disk_read_b = _sum(self.disk_read_b, read_b)
        self.disk_write_b = _sum(self.disk_write_b, write_b)
        if record is not None and step != UNKEPT and len(self.kept) < MAX_STEPS:
            self.kept.append(record)


def program_of(*texts: str) -> str:
    """Return the program that the first of the user's texts with a tie names, "" for none; no other text is kept."""
    return next((tie.text() for text in texts if (tie := tie_of(text)) is not None), "")


def short(text: str) -> str:
    """Return what is kept of a text."""
    return text[:MAX_TEXT]


def own_text(text: str) -> str:
    """Return what is kept of a text in which Slurm has a word for none."""
    return "" if text.lower() in _NONE else short(text)


def flag_text(words: Iterable[str]) -> str:
    """Return job flags as sacct prints them, whoever told them."""
    return short(",".join(filter(None, (_FLAGS.get(word, word) for word in words))))


def _sum(total: int | None, more: int | None) -> int | None:
    return total if more is None else more + (total or 0)
