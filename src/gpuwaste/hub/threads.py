"""Threads of requests: a pool for each kind of work, so that no kind waits for another."""

from dataclasses import dataclass, field
from typing import Final

from gpuwaste.core.thread_pool import REPORTS_AT_ONCE, ThreadPool, UserPlaces

REPORTS_OF_USER: Final = 2  # a third of the places, and of the memory that all of them take
_READERS: Final = 64
_QUESTIONS: Final = 32
_QUESTIONS_OF_USER: Final = 4
_PROOFS: Final = 16
_PROOFS_OF_USER: Final = 4
_CURVES: Final = 24
_CURVES_OF_USER: Final = 2
_STREAMS: Final = 4
_FILES: Final = 4


def _heavy() -> UserPlaces:
    return UserPlaces(REPORTS_OF_USER)


@dataclass(slots=True)
class Threads:
    """The pools of a hub."""

    heavy: UserPlaces = field(default_factory=_heavy)
    """Places of a user for reports and pages together."""
    health: ThreadPool = field(default_factory=lambda: ThreadPool(1))
    metrics: ThreadPool = field(default_factory=lambda: ThreadPool(1))
    proofs: ThreadPool = field(default_factory=lambda: ThreadPool(_PROOFS, UserPlaces(_PROOFS_OF_USER)))
    """Who asks: credentials, sessions and roles. Whose a request is has to be proven: a session counts as a user."""
    questions: ThreadPool = field(default_factory=lambda: ThreadPool(_QUESTIONS, UserPlaces(_QUESTIONS_OF_USER)))
    """Documents and orders that are no reports."""
    curves: ThreadPool = field(default_factory=lambda: ThreadPool(_CURVES, UserPlaces(_CURVES_OF_USER)))
    """Samples: they wait for nodes."""
    streams: ThreadPool = field(default_factory=lambda: ThreadPool(_STREAMS, UserPlaces(1)))
    """Reading events for those who stay connected."""
    files: ThreadPool = field(default_factory=lambda: ThreadPool(_FILES))
    """Reading files that are sent."""
    reports: ThreadPool = field(init=False)
    """Reports and long documents: each takes tens of MB of the store's memory while it is made."""
    readers: ThreadPool = field(init=False)
    """Pages that are made together for all who ask: `Reads` bounds how many are made at once."""

    def __post_init__(self) -> None:
        self.reports = ThreadPool(REPORTS_AT_ONCE, self.heavy)
        self.readers = ThreadPool(_READERS, self.heavy)
