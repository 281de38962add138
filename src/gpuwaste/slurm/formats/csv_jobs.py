"""A CSV file of jobs, one run per row, as JobRecords, read with a mapping."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.core.errors import ParseError, UsageError
from gpuwaste.slurm.accounting.job_record import MAX_TEXT, AccountedRun, JobDetails, JobRecord, flag_text, within
from gpuwaste.slurm.accounting.requested import printed as printed_memory
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.accounting.tres_amounts import count_of_tres, held_gpus, memory_b, parse_tres
from gpuwaste.slurm.formats.csv_mapping import REQUEST, CsvMapping, TresList
from gpuwaste.slurm.formats.csv_values import RowValues, drawn_id
from gpuwaste.slurm.formats.printed_run import PrintedId, parse_printed

if TYPE_CHECKING:
    from gpuwaste.slurm.run_key import RunKey

_KEPT: Final = 2000
_TEXTS: Final = ("name", "user", "account", "group", "partition", "qos", "submit_line", "nodes", "gpu_type")
_DETAIL_TEXTS: Final = ("flags", "reason", "constraints", "reservation")
_TRUE: Final = frozenset({"1", "true", "yes", "y", "t"})
_ADVICE: Final = "map array_task_id (and array_job_id), or an id that is different for each run"
_MAX_ID: Final = 15  # digits, far above any id
csv.field_size_limit(4 * 1024**2)


def header_of(line: bytes, mapped: CsvMapping) -> list[str]:
    """Return the columns' names. Raises UsageError where a column of the mapping is not among them."""
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
    lines: Iterable[bytes], cluster: str, mapped: CsvMapping, header: Sequence[str], *, skip: bool = False
) -> Iterator[JobRecord | BadRow]:
    """Yield a run or a bad row for each row; `skip`: the first row is the header. Nothing in the lines raises.

    A field that cannot be read is unknown, and a bad row of that field precedes its run. A run with the id and start
    of an earlier one that has ended, and other values, is a bad row: one of the two would be lost.
    """
    places = {name: header.index(column) for name, column in mapped.columns.items()}
    seen: dict[RunKey, tuple[int, JobRecord]] = {}
    for line, row in _rows(lines, mapped, skip=skip):
        if isinstance(row, str):
            yield BadRow(line, row, "")
            continue
        raw = mapped.delimiter.join(row)[:_KEPT]
        if len(row) != len(header):
            yield BadRow(line, f"{len(row)} columns, but the header has {len(header)}", raw)
            continue
        values = RowValues({name: row[place].strip() for name, place in places.items()}, mapped)
        try:
            job = _job(values, cluster)
        except ParseError as error:
            yield BadRow(line, str(error), raw)
            continue
        earlier_line, earlier = seen.setdefault(job.run_key, (line, job))
        if earlier != job and earlier.end is not None:
            yield BadRow(line, f"same job id and start as line {earlier_line}, other values differ: {_ADVICE}", raw)
            continue
        seen[job.run_key] = line, job
        for name, reason in values.unread.items():
            yield BadRow(line, f"{name}: {reason}", raw, name)
        yield job


def _rows(lines: Iterable[bytes], mapped: CsvMapping, *, skip: bool) -> Iterator[tuple[int, list[str] | str]]:
    """Yield the number of each row's first line, and its columns or why there are none."""
    texts = (line.decode(mapped.encoding, "backslashreplace").replace("\0", "") for line in lines)
    reader = csv.reader(texts, delimiter=mapped.delimiter)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            yield line, f"not CSV: {error}"
            continue
        if row is None:
            return
        if row and not skip:
            yield line, row
        skip = skip and not row


def _job(row: RowValues, cluster: str) -> AccountedRun:
    ids = _identity(row)
    submit = row.time("submit")
    if submit is None:
        raise ParseError(f"submit: {row.unread['submit']}" if "submit" in row.unread else "no submit time")
    start, end, elapsed = _interval(row, submit)
    allocated, requested = row.tres("alloc_tres"), row.tres("req_tres")
    granted = parse_tres(allocated.text)
    own = {name: row.count(name) for name in ("restarts", "n_nodes", "cpus")}
    own["n_nodes"] = _first(own["n_nodes"], count_of_tres(granted, "node"))
    own["cpus"] = _first(own["cpus"], count_of_tres(granted, "cpu"))
    asked = requested.text or _request(row, own["n_nodes"], own["cpus"])
    gpus, kind = _gpus(row, allocated, requested, started=start is not None)
    code, signal = row.exit()
    texts: dict[str, Any] = {name: row.text(name) for name in _TEXTS}
    memory = row.memory("mem_req_b", own["n_nodes"], own["cpus"])
    return within(
        AccountedRun(
            cluster=cluster,
            submit=submit,
            interactive=row.text("interactive").lower() in _TRUE,
            start=start,
            end=end,
            elapsed_s=elapsed if start is not None else None,
            suspended_s=row.whole("suspended_s") or 0,
            time_limit_s=row.whole("time_limit_s") or None,
            state=row.state(),
            req_tres=asked,
            alloc_tres=allocated.text,
            gpus=gpus,
            mem_req_b=_first(memory, memory_b(granted) if start is not None else None),
            max_rss_b=row.whole("max_rss_b"),
            total_cpu_s=row.amount("total_cpu_s"),
            exit_code=code,
            exit_signal=signal,
            details=_details(row),
            **(ids | own | texts | {"gpu_type": texts["gpu_type"] or kind}),
        )
    )


def _details(row: RowValues) -> JobDetails:
    texts = {name: row.text(name)[:MAX_TEXT] for name in _DETAIL_TEXTS if name in row.mapped.columns}
    return JobDetails(
        eligible=row.time("eligible"),
        priority=row.whole("priority"),
        flags=flag_text(re.split(r"[,|; ]", texts.pop("flags"))) if "flags" in texts else None,
        n_steps=row.count("n_steps"),
        energy_j=row.whole("energy_j") or None,
        disk_read_b=row.whole("disk_read_b"),
        disk_write_b=row.whole("disk_write_b"),
        **texts,
    )


def _identity(row: RowValues) -> dict[str, Any]:
    """Return job_id, printed_id and the ids of an array.

    An id that is not a number is derived from its text. For tasks that carry their array's id, ids are derived from
    array and task: by id and start only, tasks that started in the same second would be one run.
    """
    text = row.text("job_id")
    if not text:
        raise ParseError("no job id")
    array, task = row.count("array_job_id") or None, row.count("array_task_id")
    told = parse_printed(text) or PrintedId()
    array, task = array or told.array_job_id, told.array_task_id if task is None else task
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_ID else None
    shown = text[:200]
    if task is not None and number is not None:
        array = array or number
        shown = f"{array}_{task}"
        number = None if array == number else number
    job_id = drawn_id(text if shown == text[:200] else shown) if number is None else number
    return {
        "job_id": job_id,
        "printed_id": shown,
        "array_job_id": array,
        "array_task_id": task,
        "het_job_id": told.het_job_id,
        "het_offset": told.het_offset,
    }


def _interval(row: RowValues, submit: int) -> tuple[int | None, int | None, int | None]:
    """Return start, end and length; one that has no column is computed from the others."""
    start, end, wait = row.time("start"), row.time("end"), row.amount("wait_s")
    start = None if start == 0 < submit else start  # Slurm keeps 0 for "not yet"
    end = None if end == 0 < submit else end
    elapsed = row.whole("elapsed_s")
    if start is None and wait is not None:
        start = submit + int(wait)
    if start is not None and end is None and elapsed is not None:
        end = start + elapsed
    if start is not None and end is not None and elapsed is None:
        elapsed = max(0, end - start)
    return start, end, elapsed


def _request(row: RowValues, n_nodes: int | None, cpus: int | None) -> str:
    """Return the TRES list of the request's columns."""
    counts = {name: row.count(name) for name in REQUEST if name != "req_mem_b"}
    n_nodes, cpus = counts["req_nodes"] or n_nodes, counts["req_cpus"] or cpus
    memory = row.memory("req_mem_b", n_nodes, cpus)
    texts = {name: str(count) for name, count in counts.items() if count}
    texts |= {"req_mem_b": printed_memory(memory)} if memory else {}
    return ",".join(f"{tres}={texts[name]}" for name, tres in REQUEST.items() if name in texts)


def _gpus(row: RowValues, allocated: TresList, requested: TresList, *, started: bool) -> tuple[int | None, str]:
    """Return the GPUs of the allocation and their type; None where no column has them."""
    own, asked = row.count("gpus"), row.count("req_gpus")
    lists = [tres.text if tres.gpus_known else "" for tres in (allocated, requested)]
    if not lists[1] and asked is not None:
        lists[1] = f"gres/gpu={asked}"
    if not started and "start" not in row.mapped.columns and "wait_s" not in row.mapped.columns:
        lists[0] = lists[0] or lists[1]  # no column shows whether it started
        started = True
    held = held_gpus(parse_tres(lists[0]), lists[1], started=started)
    if held is None:
        return own, ""
    return held.total if own is None else own, held.type


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
