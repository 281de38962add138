"""Reads the runs that were judged last on a connection, with their GPUs: for findings and job pages."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from gpuwaste.ledger.ledger import DeviceLedger, DeviceUse, JobLedger, Level
from gpuwaste.slurm.accounting.job import JobRecord
from gpuwaste.store.database import Database

_LEVELS: Final = {str(level): level for level in Level}
_JOB: Final = tuple(f.name for f in fields(JobRecord))
_RUN: Final = tuple(f.name for f in fields(JobLedger) if f.name not in {"job", "devices", "shared"})
_OWN: Final = tuple(f.name for f in fields(DeviceLedger) if f.name not in {"use", "level", "unknown", "exempt"})
_USE: Final = tuple(f.name for f in fields(DeviceUse) if not f.name.startswith("unknown"))
_SEEN: Final = tuple(f"seen_{name}" if name in _OWN else name for name in _USE)  # where a class has the name


def job_ledgers(db: Database, *, candidates: bool = False) -> Iterator[tuple[int, JobLedger]]:
    """Yield the runs and their places in order; with `candidates` those that may have a finding."""
    chosen = {"candidates": candidates}
    devices = _devices(db, chosen)
    runs = db.answer("ledger_jobs", chosen)
    rest = zip(runs.pick(*_JOB), runs.pick(*_RUN), strict=True)
    for (place, _), (job, run) in zip(runs.pick("place", "cluster"), rest, strict=True):
        theirs = devices.get(place, [])
        own = tuple(device for device in theirs if device.use.share >= 1)
        shared = tuple(device for device in theirs if device.use.share < 1)
        yield place, JobLedger(JobRecord(*job), devices=own, shared=shared, **dict(zip(_RUN, run, strict=True)))


def _devices(db: Database, chosen: dict[str, bool]) -> dict[int, list[DeviceLedger]]:
    """Return the GPUs of each run."""
    found: dict[int, list[DeviceLedger]] = defaultdict(list)
    named: dict[tuple[int, str, str], list[DeviceLedger]] = defaultdict(list)  # several have no name
    answer = db.answer("ledger_devices_of", chosen)
    own = answer.pick("level", *_OWN)
    for (place, node, uuid), (level, *values), seen in zip(
        answer.pick("place", "node", "gpu_uuid"), own, answer.pick(*_SEEN), strict=True
    ):
        device = DeviceLedger(DeviceUse(*seen), _LEVELS[level], *values)
        found[place].append(device)
        named[place, node, uuid].append(device)
    for row in db.rows("ledger_parts_of", chosen):
        for device in named[row["place"], row["node"], row["gpu_uuid"]]:
            getattr(device, row["what"])[row["reason"]] = row["ms"]
    return found
