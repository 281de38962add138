"""StoredEvent, an event in the store, and its envelope: CloudEvents 1.0 with partitionkey and sequence.

An event carries the data of its kind as JSON (CONTRACTS.md, "Event").
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

import msgspec

from gpuwaste.jobs.events.kind_catalogue import PREFIX, catalogue
from gpuwaste.jobs.events.kinds.job import OF_RUN, RunTold
from gpuwaste.jobs.job_event import HistoryEvent
from gpuwaste.slurm.run_key import RunKey

MEDIA_TYPE: Final = "application/cloudevents+json"
BATCH_TYPE: Final = "application/cloudevents-batch+json"
_LAST_S: Final = 253_402_300_799  # the end of the year 9999


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event about a run, a node, a GPU or a model.

    `data` is JSON of the kind's type. `subject` is what it is about, such as node/NAME; for a run it is the run's key:
    events of one subject stay in their order. The store sets `user` and `account` (of the run in accounting) and `seq`,
    the position in the stream.
    """

    id: str
    kind: str
    subject: str
    at_utc: int
    data: str
    run: RunKey | None = None
    user: str = ""
    account: str = ""
    seq: int = 0


def event_id(kind: str, subject: str, unique: str = "") -> str:
    """Return an event's id: the same fact has the same id from any sender (CONTRACTS.md, "Event")."""
    return hashlib.sha256(f"{kind}\0{subject}\0{unique}".encode("utf-8", "backslashreplace")).hexdigest()


def tell(
    kind: str, data: object, at_utc: int, *, subject: str = "", run: RunKey | None = None, unique: str = ""
) -> StoredEvent:
    """Return an event for the store; `data` is of the kind's type. Raises KeyError for an unknown kind."""
    if not isinstance(data, catalogue()[kind].data):
        raise TypeError(f"{kind} takes {catalogue()[kind].data.__name__}, not {type(data).__name__}")
    about = subject or (str(run) if run else "")
    text = msgspec.json.encode(data).decode()
    return StoredEvent(event_id(kind, about, unique), kind, about, at_utc, text, run)


def event_of(stored: StoredEvent | HistoryEvent) -> StoredEvent:
    """Return an event of the stream in the form for outlets."""
    if isinstance(stored, StoredEvent):
        return stored
    kind, run, job = OF_RUN[stored.kind], stored.run_key, stored.job
    subject = str(run)
    unique = str(stored.at_utc) if stored.kind == "ledger" else ""  # a run can have several
    known = RunTold(run.cluster, run.job_id, run.start, job, stored.use, stored.script)
    owner = ("", "") if job is None else (job.user, job.account)
    text = msgspec.json.encode(known).decode()
    return StoredEvent(event_id(kind, subject, unique), kind, subject, stored.at_utc, text, run, *owner, stored.seq)


def cloud_event(event: StoredEvent, cluster: str) -> dict[str, Any]:
    """Return an event in structured JSON mode; the source is the cluster whose hub sends it."""
    kind = catalogue().get(event.kind)
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": _source(cluster),
        "type": PREFIX + event.kind,
        "subject": event.subject or "-",
        "time": datetime.fromtimestamp(min(max(event.at_utc, 0), _LAST_S), UTC).isoformat(),
        "datacontenttype": "application/json",
        **({"dataschema": kind.schema_id} if kind else {}),
        "partitionkey": event.subject or "-",
        "sequence": f"{event.seq:020d}",
        "data": msgspec.Raw(event.data.encode()),
    }


@lru_cache(16)
def _source(cluster: str) -> str:
    return f"/gpuwaste/{quote(cluster, safe='', errors='replace') or '-'}"


def encoded(event: StoredEvent, cluster: str) -> bytes:
    """Return an event as JSON."""
    return msgspec.json.encode(cloud_event(event, cluster))
