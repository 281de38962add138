"""Compares what the plugin sent for the same lines on all releases, after the advisor's own reading of it."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.submit.job_desc import read_job_desc
from tools.matrix.table import Column

KNOWN: Final = {
    ("--gpus=3 --cpus-per-gpu=2 --mem-per-gpu=4G", "cpus"): "up to some release between 22.05 and 24.11 Slurm counts "
    "one processor for a job with --cpus-per-gpu until it is scheduled, later ones what it will get; ReqTRES in "
    "accounting, from which a site's models learn, says the same as the request",
}
"""Differences that are Slurm's own: (sbatch line, field) -> what is known of it."""
_OWN: Final = frozenset({"uid"})
"""What two columns may differ in: the test user's number where a host was set up in between."""


def differences(columns: Sequence[Column]) -> list[str]:
    """Return one line per difference from the first column that is not KNOWN: sbatch line, field, both values."""
    with_requests = [column for column in columns if column.requests]
    if len(with_requests) < 2:  # noqa: PLR2004 nothing to compare with
        return []
    first, *others = with_requests
    found = []
    for other in others:
        for line in first.requests:
            left, right = _read(first.requests[line]), _read(other.requests.get(line))
            found += [
                f"sbatch {line}: {key} is {left.get(key)!r} on {first.release}, {right.get(key)!r} on {other.release}"
                for key in sorted({*left, *right})
                if left.get(key) != right.get(key) and (line, key) not in KNOWN
            ]
    return found


def spellings(columns: Sequence[Column]) -> list[str]:
    """Return one line per member that the releases spell in other words, for the documentation."""
    found = []
    for line in dict.fromkeys(line for column in columns for line in column.requests):
        jobs = {column.release: column.requests[line]["job"] for column in columns if line in column.requests}
        for key in sorted({key for job in jobs.values() for key in job}):
            values = {name: job.get(key) for name, job in jobs.items()}
            if len({repr(value) for value in values.values()}) > 1:
                found.append(f"{line}: {key}: " + ", ".join(f"{name} {value!r}" for name, value in values.items()))
    return found


def _read(request: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the advisor's reading of one request, field by field."""
    if request is None:
        return {"request": "none"}
    try:
        job = read_job_desc(request["job"])
    except ParseError as error:
        return {"request": str(error)}
    whole, own = _values(job), _OWN | {"asked"}
    return _values(job.asked) | {name: value for name, value in whole.items() if name not in own}


def _values(one: Any) -> dict[str, Any]:
    return {item.name: getattr(one, item.name) for item in fields(one)}
