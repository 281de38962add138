"""Documents for programs: JSON, one line per row with `|` between, and CSV that no spreadsheet can run."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, get_args, get_type_hints

from msgspec import Struct, to_builtins

from gpuwaste.act.notify.notice_types import NoticeRow, ReplayedUser, ToldRow
from gpuwaste.advice.policy.policies_types import PolicyReplayRow
from gpuwaste.core.fields import Document
from gpuwaste.core.text import harmless
from gpuwaste.ledger.now.now_types import IdleJob

Row = Mapping[str, Any]
_SUMS: Final = (
    "gpu_s", "idle_s", "low_s", "moderate_s", "high_s", "unknown_s", "suspended_s", "pending_s", "untouched_s",
    "idle_run_s", "wasted_s", "exempt_s", "coverage", "mean_util_pct",
)  # fmt: skip
_ENERGY: Final = ("energy_j", "energy_measured_s", "wasted_energy_j", "cpu_energy_j")
_JOB: Final = (
    "cluster", "jobid", "name", "user", "account", "partition", "state", "tasks", "requeued", "start", "end", "gpus",
    "gpu_type", *_SUMS, "under_used_devices", "cpu_efficiency", "memory_efficiency", *_ENERGY, "recorded",
)  # fmt: skip
_COST: Final = ("kwh", "wasted_kwh", "currency", "cost", "wasted_cost", "co2e_kg", "wasted_co2e_kg")
_USER: Final = ("user", "accounts", "jobs", "running", *_SUMS, *_ENERGY, *_COST, "recorded")
_ACCOUNT: Final = ("account", "users", "jobs", "running", *_SUMS, *_ENERGY, *_COST, "recorded")
_CLUSTER: Final = ("cluster", "jobs", "running", *_SUMS, *_ENERGY, *_COST, "recorded")
_DAY: Final = (
    "day", "jobs", "gpu_s", "idle_s", "low_s", "moderate_s", "high_s", "pending_s", "wasted_s", *_ENERGY, *_COST,
    "recorded",
)  # fmt: skip
_DEVICE: Final = (
    "cluster", "jobid", "run_start", "run_end", "state", "node", "gpu_uuid", "share", "t0", "t1", *_SUMS, "level",
    "untouched", "under_used", "mem_max_b", "mem_total_b", "map_source", "confidence", "profiled_s",
    "sm_active", "tensor_active", "dram_active", "nvlink_b", "pcie_b", *_ENERGY, "gpu_type", "recorded",
)  # fmt: skip
_PREDICTED: Final = (
    "request", "name", "user", "target", "source", "basis", "p", "level", "quantile", "value", "model", "model_hash",
    "recorded",
)  # fmt: skip
_VERDICT: Final = (
    *("id", "at_utc_us", "op", "policy", "mode", "action", "would_be", "held", "sampled", "override", "user"),
    *("account", "partition", "qos", "name", "is_array", "gpus", "time_limit_s", "job_ids", "states", "stands", "hit"),
    *("lines", "latency_us", "model_hash", "recorded"),
)
_SCORE: Final = (
    *("policy", "week", "n", "annotated", "warned", "rejected", "sampled", "sampled_judged", "sampled_hits"),
    *("false_rejects", "reject_precision", "would_say", "judged", "hits", "precision", "went_wrong", "found", "recall"),
    *("overrides", "overrides_judged", "overrides_hits", "floored", "open", "no_job", "recorded"),
)
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # the last: full width
# A cell begins at the text's own begin, and where the program that opens the file separates by another character than
# the comma. Blanks and quotes before the formula are ignored by some.
_BEGINS: Final = re.compile(f'(^|[;|\t])(?=[ "]*[{re.escape("".join(FORMULA))}])')


def to_json(document: Mapping[str, Any]) -> str:
    """Return the document as it came from the hub; what is not ASCII is escaped, so that no terminal acts on it."""
    return json.dumps(document, indent=2) + "\n"


def to_parsable(document: Document, header: bool = True, part: str = "") -> str:
    """Return one line per row, `|` between the cells, times in UTC seconds; an unknown cell is empty."""
    return parsable_rows(*table(document, part), header=header)


def parsable_rows(columns: Sequence[str], rows: Iterable[Row], *, header: bool = True) -> str:
    """Return one line per row, as `to_parsable` does for the rows of a document."""
    lines = ["|".join(columns)] if header else []
    lines += ["|".join(_cell(row.get(c)).replace("|", "\\x7c") for c in columns) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def to_csv(document: Document, header: bool = True, part: str = "") -> str:
    """Return CSV; what a spreadsheet would take for a formula, by any separator, starts with an apostrophe."""
    return csv_rows(*table(document, part), header=header)


def csv_rows(columns: Sequence[str], rows: Iterable[Row], *, header: bool = True) -> str:
    """Return CSV, as `to_csv` does for the rows of a document."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(columns)
    writer.writerows([_spreadsheet(row.get(c)) for c in columns] for row in rows)
    return out.getvalue()


def table(document: Document, part: str = "") -> tuple[Sequence[str], list[Row]]:
    """Return the columns and rows of a document: jobs, devices, predicted numbers, verdicts, weeks of a score.

    A report has other tables by their names: users, accounts, clusters, days.
    """
    kind = getattr(document, "document", "")
    columns, rows_of = _PARTS.get((kind, part)) or _TABLES.get(kind) or _own_rows(document)
    mark = {"recorded": getattr(document, "recorded", False)}
    return columns, [{**row, **mark} for row in rows_of(document)]


def _own_rows(document: Document) -> tuple[Sequence[str], Callable[[Any], Iterable[Row]]]:
    """Return the rows of the field that the document's type names as ROWS, and their fields as columns."""
    (kind,) = get_args(get_type_hints(type(document))[document.ROWS])
    return _columns(kind), _listed(document.ROWS)


def _columns(kind: type[Struct], *hidden: str) -> Sequence[str]:
    return (*(name for name in kind.__struct_encode_fields__ if name not in hidden), "recorded")


def _listed(name: str) -> Callable[[Any], Iterable[Row]]:
    return lambda document: map(to_builtins, getattr(document, name))


def _verdicts(document: Any) -> Iterable[Row]:
    for row in map(to_builtins, document.verdicts):
        yield {**row, **{name: "; ".join(row[name]) for name in ("job_ids", "states", "lines")}}


def _idle_jobs(document: Any) -> Iterable[Row]:
    for row in map(to_builtins, document.idle):
        yield {**row, "nodes": ",".join(row["nodes"]), "generated": document.generated}


def _priced(name: str) -> Callable[[Any], Iterable[Row]]:
    """Return what yields rows with their energy beside the other cells."""

    def rows(document: Any) -> Iterable[Row]:
        for row in map(to_builtins, getattr(document, name)):
            names = {"accounts": ",".join(row["accounts"])} if "accounts" in row else {}
            yield {**(row["energy"] or {}), **row, **names}

    return rows


def _devices(document: Any) -> Iterable[Row]:
    for run in document.runs:
        of_run = {"cluster": run.cluster, "jobid": run.printed_id, "state": run.state, "gpu_type": run.gpu_type}
        of_run |= {"run_start": run.start, "run_end": run.end}
        yield from ({**of_run, **to_builtins(device)} for device in [*run.devices, *run.shared])


def _predicted(document: Any) -> Iterable[Row]:
    """Yield a row for each probability and for each quantile."""
    for place, prediction in enumerate(document.predictions, 1):
        of_request = {"request": place, "name": prediction.request.name, "user": prediction.request.user}
        of_request |= {"model": prediction.model, "model_hash": prediction.model_hash}
        for target in map(to_builtins, prediction.targets):
            quantiles = target["quantiles"] or {"": None}
            yield from ({**target, **of_request, "quantile": q, "value": v} for q, v in quantiles.items())


_TABLES: Final[Mapping[str, tuple[Sequence[str], Callable[[Any], Iterable[Row]]]]] = {
    "report": (_JOB, _listed("jobs")),
    "top": (_JOB, _listed("jobs")),
    "now": (("generated", *_columns(IdleJob, "advice")), _idle_jobs),
    "job": (_DEVICE, _devices),
    "predict": (_PREDICTED, _predicted),
    "policy-replay": (_columns(PolicyReplayRow), _listed("rows")),
    "verdicts": (_VERDICT, _verdicts),
    "score": (_SCORE, _listed("weeks")),
    "notices": (_columns(NoticeRow, "next_utc"), _listed("notices")),
    "notice-replay": (_columns(ReplayedUser), _listed("users")),
    "notice-run": (_columns(ToldRow), _listed("told")),
    "notice-preview": (_columns(ToldRow), lambda document: [to_builtins(document)]),
}

_PARTS: Final[Mapping[tuple[str, str], tuple[Sequence[str], Callable[[Any], Iterable[Row]]]]] = {
    ("report", "users"): (_USER, _priced("users")),
    ("report", "accounts"): (_ACCOUNT, _priced("accounts")),
    ("report", "clusters"): (_CLUSTER, _priced("clusters")),
    ("report", "days"): (_DAY, _priced("days")),
}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return harmless(str(value))


def _spreadsheet(value: Any) -> str:
    cell = _cell(value)
    if isinstance(value, int | float):
        return cell
    if isinstance(value, str) and value.startswith(FORMULA):
        cell = f"'{cell}"  # its first character may be shown as an escape
    return _BEGINS.sub(r"\1'", cell)
