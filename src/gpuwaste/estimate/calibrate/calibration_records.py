"""Reading records.jsonl of a calibration: the last result of each program, and why others are left out."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.files import open_plain
from gpuwaste.core.typed import decode
from gpuwaste.core.units import say_percent
from gpuwaste.estimate.calibrate.calibration_folder import PLAN, RECORDS
from gpuwaste.slurm.gpu_types import find

MAX_RECORDS: Final = 50_000
_MAX_LINE_B: Final = 64 * 1024
MAX_SPREAD: Final = 0.5  # of the parts of one measurement: with more, something else ran on the GPU
_Name = Annotated[str, Meta(max_length=200)]


class Record(Struct, kw_only=True, frozen=True):
    """One line of records.jsonl; fields beyond these are ignored."""

    id: Annotated[str, Meta(min_length=1, max_length=200)]
    status: Annotated[str, Meta(max_length=40)]
    family: _Name = ""
    program: Annotated[str, Meta(max_length=300)] = ""
    """The program's file, relative to the directory."""
    step_s: Annotated[float, Meta(gt=0, le=1e7)] | None = None
    spread: Annotated[float, Meta(ge=0)] = 0.0
    own: bool = False
    """A run of the site's users, not a program of the plan."""
    framework: _Name = ""
    device: _Name = ""
    platform: _Name = ""
    gpu: _Name = ""
    driver: _Name = ""
    clock_mhz: _Name = ""
    max_clock_mhz: _Name = ""
    context_b: Annotated[int, Meta(ge=0, le=1 << 50)] | None = None
    """Memory in use on the GPU besides the pool of the framework."""

    @property
    def hardware(self) -> str:
        """The hardware and software that it was measured on, without the current clock rate."""
        parts = [self.gpu or self.device, self.driver and f"driver {self.driver}", self.framework]
        if self.max_clock_mhz:
            parts.append(f"at most {self.max_clock_mhz} MHz")
        return ", ".join(part for part in parts if part)


def read_records(folder: Path, gpu: str = "") -> tuple[list[Record], Counter[str]]:
    """Return usable records in the order of their programs, and the number of others by reason.

    `gpu` is the type on which they must have been measured.

    Raises GpuwasteError for a file that cannot be read, or has more than MAX_RECORDS lines.
    """
    last: dict[str, Record] = {}
    left_out: Counter[str] = Counter()
    for line in lines_of(folder / RECORDS):
        try:
            record = decode(line, Record)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            left_out["not a record"] += 1
            continue
        if record.status != "started" or record.id not in last:
            last[record.id] = record
    usable = []
    for record in last.values():
        why = _unusable(record, folder) or _elsewhere(record, gpu)
        if why:
            left_out[why] += 1
        else:
            usable.append(record)
    return sorted(usable, key=lambda record: record.id), left_out


def _unusable(record: Record, folder: Path) -> str:
    if record.status == "memory":
        return "larger than the GPU's memory or the budget"
    if record.status == "started":
        return "ended the measuring process"
    if record.status != "ok" or record.step_s is None:
        return "failed"
    if record.spread > MAX_SPREAD:
        return f"with repeats that differ by more than {say_percent(MAX_SPREAD)}"
    place = (folder / record.program).resolve()
    inside = place.is_relative_to(folder.resolve()) and place.is_file()
    return "" if inside else "without the program's file"


def _elsewhere(record: Record, gpu: str) -> str:
    """Return why a record is not of this type, "" without such a reason."""
    if record.platform == "cpu":
        return "measured on a CPU"
    seen = find(record.gpu or record.device)
    wanted = find(gpu)
    if seen is not None and wanted is not None and seen.family != wanted.family:
        return f"measured on {seen.name}, not on {wanted.name}"
    return ""


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the non-empty lines of a file of records. Raises GpuwasteError."""
    try:
        with open_plain(path) as file:
            for number in range(MAX_RECORDS + 1):
                line = file.readline(_MAX_LINE_B)
                if not line:
                    return
                if number == MAX_RECORDS:
                    raise GpuwasteError(f"{path}: more than {MAX_RECORDS} lines: not the records of one calibration")
                if line.strip():
                    yield line
    except OSError as error:
        hint = "name the directory of gpuwaste model calibrate"
        raise GpuwasteError(f"{path}: cannot be read: {error.strerror}: {hint}") from error


def progress_of(folder: Path) -> int:
    """Return how many programs of the plan have a result, good or bad. Raises GpuwasteError."""
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
