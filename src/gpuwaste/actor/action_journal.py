"""ActionJournal: the actions this actor sent, on disk before sending: what the hub forgets is not done twice."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Self

from gpuwaste.actor.actor_settings import ActorPorts
from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.log_event import LogEvent
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.net.durable_file import DurableFile

JOURNAL: Final = "actions.sqlite"
_TABLE: Final = """
    CREATE TABLE sent (id TEXT NOT NULL, at_utc INTEGER NOT NULL, plan TEXT NOT NULL);
    CREATE INDEX sent_id ON sent (id);
    CREATE INDEX sent_at ON sent (at_utc)
"""
_CORRUPT: Final = log_event.error(
    "actor-journal-corrupt: the actor's journal {path} is corrupt ({reason}), kept as {kept}; a new one is used",
    "Often a power cut or a full disk. Only the hub has the actions sent before. Keep the file for a bug report.",
)
_KEPT_S: Final = 400 * DAY_S
_FORGET: Final = "DELETE FROM sent WHERE at_utc < ? AND at_utc < (SELECT max(at_utc) FROM sent) - ?"


@dataclass(frozen=True, slots=True)
class SentBefore:
    """How often an action was sent, and the plan of the last time."""

    times: int = 0
    plan: Mapping[str, str] = field(default_factory=dict)


class ActionJournal(DurableFile, Part):
    """One file; a second actor with the same state_dir is rejected. Every method raises StoreError."""

    migrations: ClassVar[tuple[str, ...]] = (_TABLE,)
    owner: ClassVar[str] = "actor"
    corrupt: ClassVar[LogEvent] = _CORRUPT
    when_full: ClassVar[str] = ""

    def __init__(self, path: Path, now: int) -> None:
        """Open or create the file, and delete what was sent long before `now`, UTC seconds, and before the last action.

        If a host's clock is years ahead at its start, nothing is deleted.
        """
        super().__init__(path)
        self._run(lambda db: db.execute(_FORGET, (now - _KEPT_S, _KEPT_S)))

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an actor. Raises StoreError."""
        now = parts.get(ActorPorts).clock.utc_s()
        return cls(Path(parts.get(Config).actor.state_dir) / JOURNAL, now)

    def before(self, action: str) -> SentBefore:
        """Return the record of an action."""
        rows = self._run(
            lambda db: db.execute("SELECT plan FROM sent WHERE id = ? ORDER BY rowid", (action,)).fetchall()
        )
        return SentBefore(len(rows), json.loads(rows[-1][0])) if rows else SentBefore()

    def note(self, action: str, plan: Mapping[str, str], now: int) -> None:
        """Record that an action is about to be sent; on disk when it returns."""
        row = (action, now, json.dumps(dict(plan)))
        self._run(lambda db: db.execute("INSERT INTO sent VALUES (?, ?, ?)", row))

    def last_hour(self, now: int) -> int:
        """Return how many actions were sent in the hour before `now`, and after it by a clock that was ahead."""
        since = now - HOUR_S
        found = self._run(lambda db: db.execute("SELECT count(*) FROM sent WHERE at_utc >= ?", (since,)).fetchone())
        return int(found[0])
