"""A CSV file of jobs, one run a row, as JobRecords, by a mapping."""

import csv
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, tzinfo
from typing import Any, Final

from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.core.job import JobRecord
from gpuwaste.core.units import parse_duration_s, parse_size_b
from gpuwaste.slurm.csv_mapping import REQUEST, TIMES, Mapped
from gpuwaste.slurm.sacct import BadRow
from gpuwaste.slurm.times import parse_time_s

_KEPT: Final = 2000
_ABSENT: Final = frozenset({"", "NULL", "None", "null", "NA", "N/A", "nan", "NaN", "-", "-1", "Unknown"})
_TEXTS: Final = (
    *("name", "user", "account", "group", "partition", "qos", "submit_line", "nodes", "gpu_type", "req_tres"),
    "alloc_tres",
)
_COUNTS: Final = ("restarts", "n_nodes", "cpus", "exit_code", "exit_signal")
_MAX: Final = 1e15
_TRUE: Final = frozenset({"1", "true", "yes", "y", "t"})
csv.field_size_limit(4 * 1024**2)


def header_of(line: bytes, mapped: Mapped) -> list[str]:
    """Return the columns' names. Raises UsageError where one that the mapping names is not among them."""
    text = line.decode(mapped.encoding, "backslashreplace").removeprefix("\ufeff")
    try:
        names = [name.strip() for name in next(csv.reader([text], delimiter=mapped.delimiter), [])]
    except csv.Error as error:
        raise UsageError(f"the header line cannot be read: {error}: is it CSV?") from error
    missing = sorted(set(mapped.columns.values()) - set(names))
    if missing:
        raise UsageError(f"no column {', '.join(map(repr, missing))} in the header: it has {', '.join(names)[:300]}")
    return names


def read_csv(
    lines: Iterable[bytes], cluster: str, mapped: Mapped, header: Sequence[str], *, skip: bool = False
) -> Iterator[JobRecord | BadRow]:
    """Yield a run or a bad row for each row; `skip`: the first row is the header. Nothing in the lines raises."""
    places = {name: header.index(column) for name, column in mapped.columns.items()}
    texts = (line.decode(mapped.encoding, "backslashreplace").replace("\0", "") for line in lines)
    reader = csv.reader(texts, delimiter=mapped.delimiter)
    line = 0
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield BadRow(line, f"no CSV: {error}", "")
            continue
        if row is None:
            return
        if skip or not row:
            skip = False
            continue
        raw = mapped.delimiter.join(row)[:_KEPT]
        if len(row) != len(header):
            yield BadRow(line, f"{len(row)} columns where the header has {len(header)}", raw)
            continue
        try:
            yield _job({name: row[place].strip() for name, place in places.items()}, cluster, mapped)
        except ParseError as error:
            yield BadRow(line, str(error), raw)


def _job(row: dict[str, str], cluster: str, mapped: Mapped) -> JobRecord:
    times = {name: _time(row.get(name, ""), mapped, name) for name in TIMES}
    amounts = {name: _amount(row[name], mapped, name) for name in row if name.endswith(("_s", "_b"))}
    submit, start, end = times["submit"], times["start"], times["end"]
    if submit is None:
        raise ParseError("no submit time")
    if start is None and amounts.get("wait_s") is not None:
        start = submit + int(amounts["wait_s"] or 0)
    elapsed = _whole(amounts.get("elapsed_s"))
    if start is not None and end is None and elapsed is not None:
        end = start + elapsed
    if start is not None and end is not None and elapsed is None:
        elapsed = max(0, end - start)
    values: dict[str, Any] = {name: row.get(name, "") for name in _TEXTS}
    values |= {name: _count(row.get(name, ""), name) for name in _COUNTS}
    for name in ("time_limit_s", "mem_req_b", "max_rss_b"):
        values[name] = _whole(amounts.get(name))
    job_id, printed = _identity(row["job_id"])
    return JobRecord(
        cluster=cluster,
        job_id=job_id,
        submit=submit,
        printed_id=printed,
        interactive=row.get("interactive", "").lower() in _TRUE,
        start=start,
        end=end,
        elapsed_s=elapsed if start is not None else None,
        suspended_s=_whole(amounts.get("suspended_s")) or 0,
        state=_state(row.get("state", ""), mapped),
        gpus=_count(row.get("gpus", ""), "gpus") or 0,
        total_cpu_s=amounts.get("total_cpu_s"),
        **(values | {"req_tres": values["req_tres"] or _request(row, amounts)}),
    )


def _identity(text: str) -> tuple[int, str]:
    """Return the id; one that is no number is drawn from the text, the same each time."""
    if text.isascii() and text.isdigit() and len(text) <= 15:  # noqa: PLR2004 far above any id
        return int(text), text
    if not text:
        raise ParseError("no job id")
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6]) + 2**48, text[:200]


def _state(text: str, mapped: Mapped) -> str:
    if text in mapped.states:
        return mapped.states[text]
    words = text.split()
    return words[0].upper().rstrip("+")[:40] if words else ""


def _request(row: dict[str, str], amounts: dict[str, float | None]) -> str:
    parts = []
    for name, tres in REQUEST.items():
        if name in amounts:
            memory = _whole(amounts[name])
            parts += [f"{tres}={memory // 1024}K"] if memory else []
        else:
            count = _count(row.get(name, ""), name)
            parts += [f"{tres}={count}"] if count else []
    return ",".join(parts)


def _time(text: str, mapped: Mapped, name: str) -> int | None:
    if text in _ABSENT:
        return None
    try:
        if mapped.time_format == "epoch":
            seconds = float(text)
            return int(seconds) if 0 <= seconds < _MAX / 1000 else _refuse(name, text)
        if mapped.time_format != "iso":
            return int(_in_zone(datetime.strptime(text, mapped.time_format), mapped.zone).timestamp())  # noqa: DTZ007
        if not text.isdigit():
            return int(_in_zone(datetime.fromisoformat(text), mapped.zone).timestamp())
        return parse_time_s(text, mapped.zone)
    except (ValueError, OverflowError, ParseError):
        return _refuse(name, text)


def _in_zone(instant: datetime, zone: tzinfo) -> datetime:
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=zone)


def _amount(text: str, mapped: Mapped, name: str) -> float | None:
    """Read a number in the field's unit, or a duration or size as Slurm prints it."""
    if text in _ABSENT:
        return None
    try:
        value = float(text) * mapped.units.get(name, 1.0)
    except ValueError:
        try:
            read = parse_duration_s(text) if name.endswith("_s") else parse_size_b(text)
        except ParseError as error:
            raise ParseError(f"{name}: {error}") from error
        value = math.nan if read is None else float(read)
    if math.isnan(value):
        return None
    return value if 0 <= value <= _MAX else float(_refuse(name, text))


def _count(text: str, name: str) -> int | None:
    if text in _ABSENT:
        return None
    try:
        value = float(text)
    except ValueError:
        return _refuse(name, text)
    return int(value) if 0 <= value < 2**31 else _refuse(name, text)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _refuse(name: str, text: str) -> int:
    raise ParseError(f"{name}: cannot read {text[:40]!r}")
