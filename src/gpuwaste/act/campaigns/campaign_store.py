"""CampaignStore: the campaigns as the hub saw them last, and the record of what happened to them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from gpuwaste.jobs.events.envelope import StoredEvent
from gpuwaste.jobs.events.event_store import append_told
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.store.hub.json_rows import to_json

THERE: Final = 2**53  # later than any time
MAX_LINES: Final = 200  # of one campaign's record that are read


@dataclass(frozen=True, slots=True)
class KeptCampaign:
    """A row of table campaigns."""

    name: str
    hash: str
    text: str
    key_print: str
    first_utc: int
    gone_utc: int = THERE

    @property
    def gone(self) -> bool:
        """Whether its file is missing, or not in use."""
        return self.gone_utc < THERE


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A row of table campaign_record."""

    campaign: str
    at_utc: int
    what: str
    hash: str
    words: str


class CampaignStore:
    """The campaigns' tables of a hub's store; one thread writes. Raises StoreError."""

    def __init__(self, store: HubStore) -> None:
        self._store = store

    def known(self) -> dict[str, KeptCampaign]:
        """Return every campaign that the hub has seen, by name."""
        with self._store.reader() as db:
            return {row["name"]: KeptCampaign(**row) for row in db.rows("campaigns_all")}

    def record(self, campaign: str) -> list[RecordRow]:
        """Return the newest lines of a campaign's record, the oldest first."""
        with self._store.reader() as db:
            rows = db.rows("campaign_record_of", {"campaign": campaign, "limit": MAX_LINES})
        return [RecordRow(**row) for row in rows]

    def save(
        self,
        changed: Sequence[KeptCampaign],
        lines: Sequence[RecordRow],
        events: Sequence[StoredEvent],
        now: int,
    ) -> None:
        """Store campaigns, lines of their record and events in one transaction."""
        with self._store.writing() as db:
            if changed:
                db.run("campaigns_drop", {"names": [one.name for one in changed]}).fetchall()
                db.run("campaigns_add", {"rows": to_json(map(asdict, changed))}).fetchall()
            if lines:
                db.run("campaign_record_add", {"rows": to_json(map(asdict, lines))}).fetchall()
            append_told(db, events, now)

    def reach(self, campaign: str, what: Sequence[str], start: int, end: int) -> Sequence[Mapping[str, Any]]:
        """Return by user and account how many verdicts, steps and digests were given and held back (campaign_reach)."""
        policies, rules = ([w.partition(":")[2] for w in what if w.startswith(f"{s}:")] for s in ("policy", "rule"))
        values = {
            "campaign": campaign, "policies": policies, "rules": rules, "digest": "digest" in what,
            "from": start, "to": end,
        }  # fmt: skip
        with self._store.reader() as db:
            return db.rows("campaign_reach", values)
