"""ActorCounters: what the actor counted, for /metrics; written by its one thread."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class ActorCounters:
    """Counts since the start; instants are UTC seconds."""

    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    answered_utc: float | None = None
    stopped: bool = False
    leased: bool = False
    unreported: bool = False
