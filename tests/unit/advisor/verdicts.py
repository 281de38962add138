"""Verdicts for tests of the wire and of the hub."""

from collections.abc import Iterable
from typing import Any

from gpuwaste.advice.policy.policy_case import Spent
from gpuwaste.advice.verdicts.verdict_batch import encode_verdict
from gpuwaste.advisor.verdict_outbox import Chunk, VerdictOutbox
from gpuwaste.advisor.verdict_writer import add_line
from gpuwaste.jobs.verdict import Verdict

DAY_US = 86_400_000_000
NOON_US = 1_700_049_600_000_000  # 2023-11-15 12:00 UTC


def verdict(number: int, **more: Any) -> Verdict:
    """Return a verdict whose id tells its number."""
    values: dict[str, Any] = {
        "id": f"{number:016d}", "cluster": "gw", "at_utc_us": NOON_US, "op": "submit", "policy": "site",
        "mode": "warn", "action": "warn", "would_be": "warn", "user": "alice", "account": "proj1", "name": "train",
        "p": {"failure": 0.75}, "quantiles": {"walltime": {"0.5": 60.0}}, "triggers": {"failure": 0.75},
        "reasons": ("3 of your last 4 jobs failed",), "lines": ("gpuwaste: this job is likely to fail",),
    }  # fmt: skip
    return Verdict(**{**values, **more})


def put(outbox: VerdictOutbox, verdicts: Iterable[Verdict]) -> int:
    """Put verdicts as the writer does; return how many were news."""
    chunk = Chunk()
    for said in verdicts:
        assert add_line(chunk, encode_verdict(said).line, outbox.day_of)
    return outbox.put(chunk)


def spent(outbox: VerdictOutbox, kind: Spent, user: str, day: str) -> int:
    """Return how many of a kind the user has had on a local date."""
    return outbox.spent_on(day).get((kind, user), 0)
