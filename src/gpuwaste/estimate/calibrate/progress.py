"""How far a calibration is."""

import json
from pathlib import Path

from gpuwaste.estimate.calibrate.folder import PLAN, RECORDS
from gpuwaste.estimate.calibrate.records import lines_of


def progress_of(folder: Path) -> int:
    """Return how many programs of the plan have a result, whatever it is. Raises GpuwasteError."""
    if not (folder / RECORDS).exists():
        return 0
    planned = _ids(folder / PLAN)
    return len(planned & _ids(folder / RECORDS, started=False))


def _ids(path: Path, *, started: bool = True) -> set[str]:
    found = set()
    for line in lines_of(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and (started or record.get("status") != "started"):
            found.add(str(record.get("id")))
    return found
