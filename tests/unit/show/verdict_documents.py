"""Documents of verdicts for tests of texts and commands: an operator's, a user's, a score."""

from typing import Any

from msgspec import to_builtins

from gpuwaste.advice.verdicts.verdict_score import score_document
from gpuwaste.advice.verdicts.verdict_types import FOR_USERS
from gpuwaste.core.underuse import UNDER_USE

AT = 1_700_049_600


def row(number: int, **more: Any) -> dict[str, Any]:
    """Return a verdict as an operator sees it."""
    values: dict[str, Any] = {
        "id": f"{number:016d}", "cluster": "gw", "at_utc_us": (AT + number) * 10**6, "op": "submit", "policy": "site",
        "mode": "warn", "action": "warn", "would_be": "warn", "held": "", "sampled": False, "override": "",
        "user": "alice", "account": "proj1", "partition": "gpu", "qos": "normal", "name": "train", "is_array": False,
        "gpus": 4, "time_limit_s": 3600, "p": {"failure": 0.9}, "triggers": {"failure": 0.9}, "quantiles": {},
        "reasons": [], "lines": ["gpuwaste: your last 4 jobs named train failed"], "latency_us": 400,
        "model_hash": "ab", "job_ids": ["7"], "states": ["FAILED"], "stands": "ended", "hit": True, "runs": 1,
        "started": None, "start_within": None,
    }  # fmt: skip
    return {**values, **more}


def listed(*, whole: bool = True) -> dict[str, Any]:
    """Return a list: a hit, a reject, a shadow verdict without a job, an array, a name that would act on a terminal."""
    rows = [
        row(1),
        row(2, action="reject", would_be="reject", job_ids=[], states=[], stands="rejected", hit=None),
        row(3, job_ids=["9_1", "9_2"], states=["COMPLETED", "FAILED"], hit=False, name="x\x1b[31m=1+1|y"),
    ]
    hidden = row(4, action="pass", mode="shadow", held="shadow", job_ids=[], states=[], stands="no job", hit=None)
    shown = [*rows, hidden] if whole else [{name: found[name] for name in FOR_USERS} for found in rows]
    frame = {"document": "verdicts", "schema": 1, "recorded": False, "generated": AT, "start": 0, "end": AT}
    return {**frame, "verdicts": shown}


def week(name: str = "2026-W01", policy: str = "site", **more: int) -> dict[str, Any]:
    """Return a row of the store's score."""
    names = (
        "n annotated warned rejected sampled sampled_judged sampled_hits would_say judged hits went_wrong found"
        " overrides overrides_judged overrides_hits floored starts starts_within open no_job"
    )
    return {"policy": policy, "week": name, **dict.fromkeys(names.split(), 0), **more}


def score(*, empty: bool = False) -> dict[str, Any]:
    """Return a score of two weeks, the second below the floor."""
    weeks = [
        week(n=30, warned=10, would_say=10, judged=8, hits=6, went_wrong=8, found=6, sampled=4, sampled_judged=4,
             sampled_hits=3, overrides=3, overrides_judged=2, overrides_hits=1, starts=5, starts_within=4),
        week("2026-W02", n=9, would_say=4, judged=4, hits=1, floored=3, open=2, no_job=1),
    ]  # fmt: skip
    bins = [
        {"policy": "site", "week": "2026-W01", "target": "failure", "bin": 0, "n": 20, "sum_p": 1.0, "sum_true": 2.0},
        {"policy": "site", "week": "2026-W01", "target": "failure", "bin": 8, "n": 8, "sum_p": 6.8, "sum_true": 6.0},
    ]
    found: dict[str, Any] = to_builtins(
        score_document([] if empty else weeks, [] if empty else bins, UNDER_USE, since=AT - 86400, now=AT)
    )
    return found
