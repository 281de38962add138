"""The features in plain Python, dicts and deques, as their definitions read: slow, and no code of predict's state.

Tests compare HistoryState and replay with it; the bench shows what it costs.
"""

# ruff: noqa: PLR2004 the definitions are numbers here, and stand apart from predict's names on purpose

import math
import struct
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwaste.advice.predict.features import FEATURES
from gpuwaste.advice.predict.text_facts import NAME_FACTS, SCRIPT_FACTS, name_facts, script_facts
from gpuwaste.jobs.history.history_keys import KEYS
from gpuwaste.jobs.history.job_table import GpuUse
from gpuwaste.jobs.history.outcome import Outcome
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.plain_predecessors import Sent, of_predecessors

NAN = math.nan
FAILED = {Outcome.FAILED, Outcome.OUT_OF_MEMORY}
_COLUMNS = {"limit_s": "limit", "mem_b": "mem"}


@dataclass(slots=True)
class Run:
    """An ended run: outcome, minutes as a float16 holds them, processors, and whether it came to its limit."""

    end: int
    outcome: Outcome
    run: float
    limit: float
    cpus: float
    late: bool

    @property
    def failed(self) -> float:
        """1 for failed, 0 for completed, NaN for any other end."""
        return 1.0 if self.outcome in FAILED else 0.0 if self.outcome == Outcome.COMPLETED else NAN


@dataclass(slots=True)
class Past:
    """What one key remembers."""

    runs: deque[Run] = field(default_factory=lambda: deque(maxlen=8))  # the newest first
    peaks: deque[float] = field(default_factory=lambda: deque(maxlen=3))
    failed: int = 0
    completed: int = 0
    cancelled: int = 0
    ended: int = 0
    running: int = 0
    queued: int = 0
    burst: int = 0
    unanswered: int = 0
    streak: int = 0
    fast: float = NAN
    slow: float = NAN
    mean: float = NAN
    var: float = NAN
    sent: tuple[float, float] = (NAN, NAN)
    last_submit: int | None = None
    last_fail: int | None = None
    use: tuple[float, float] = (NAN, NAN)
    active_share: float = NAN


class PlainHistory:
    """The events and the question of HistoryState."""

    def __init__(self) -> None:
        """Start without history."""
        self.past: dict[tuple[Any, ...], Past] = {}
        self.open: dict[tuple[int, int], dict[str, Any]] = {}
        self.sent: dict[str, deque[Sent]] = {}

    def vector(self, request: JobRequest) -> NDArray[np.float32]:
        """Return the features [F] of a request."""
        values = _of_request(request)
        values |= of_predecessors(list(self.sent.get(request.user, ())), _kinds(request), request.submit)
        for key, name in zip(KEYS, _keys(request), strict=True):
            past = self.past.get(name, Past())
            values |= {f"{key.name}_{feature}": value for feature, value in _of_past(past, request).items()}
        with np.errstate(over="ignore"):
            return np.array([values[feature.name] for feature in FEATURES], dtype=np.float32)

    def submitted(self, request: JobRequest, job_id: int) -> None:
        """Tell of a submission."""
        run = (job_id, request.submit)
        if run in self.open:
            return
        pasts = [self.past.setdefault(name, Past()) for name in _keys(request)]
        limit = NAN if request.time_limit_s is None else float(request.time_limit_s)
        cpus = NAN if request.cpus is None else float(request.cpus)
        for past in pasts:
            close = past.last_submit is not None and request.submit - past.last_submit <= 60
            past.burst = past.burst + 1 if close else 1
            past.queued += 1
            past.unanswered += 1
            past.last_submit = request.submit
            past.sent = (_half(limit / 60.0), _half(cpus))
        sent = Sent(_kinds(request), request.submit)
        self.sent.setdefault(request.user, deque(maxlen=16)).appendleft(sent)
        self.open[run] = {
            "pasts": pasts, "limit": limit, "cpus": cpus, "gpus": request.gpus, "at": "queue", "sent": sent,
        }  # fmt: skip

    def started(self, job_id: int, submit: int, at: int) -> bool:
        """Tell of a start."""
        run = self.open.get((job_id, submit), {"at": "nowhere"})
        if run["at"] == "queue":
            run["at"] = "nodes"
            run["sent"].start = at
            for past in run["pasts"]:
                past.queued -= 1
                past.running += 1
        return bool(run["at"] == "nodes")

    def ended(  # noqa: PLR0917 the facts of an end
        self, job_id: int, submit: int, at: int, run_s: float | None, outcome: Outcome, max_rss_b: float | None = None
    ) -> bool:
        """Tell of an end."""
        run = self.open.get((job_id, submit))
        if run is None or run["at"] == "end":
            return False
        seconds, limit = NAN if run_s is None else run_s, run["limit"]
        late = seconds >= 0.95 * limit or seconds >= limit - 60
        one = Run(at, outcome, _half(seconds / 60.0), _half(limit / 60.0), _half(run["cpus"]), late)
        for past in run["pasts"]:
            if run["at"] == "queue":
                past.queued -= 1
            else:
                past.running -= 1
            past.ended += 1
            if outcome != Outcome.NEVER_STARTED:
                _remember(past, one, seconds, max_rss_b)
        run["at"] = "end"
        run["sent"].end, run["sent"].outcome = at, outcome
        if not run["gpus"]:
            del self.open[job_id, submit]
        return True

    def gpu_use(self, job_id: int, submit: int, use: GpuUse) -> bool:
        """Tell what the ledger says."""
        run = self.open.get((job_id, submit))
        if run is None or run["at"] != "end":
            return False
        if use.coverage < 0.8:
            return True
        for past in run["pasts"]:
            past.use = (_half(use.used_ratio), _half(float(use.gpus_active)))
            past.active_share = past.use[1] / run["gpus"]
        del self.open[job_id, submit]
        return True


def _remember(past: Past, run: Run, seconds: float, peak: float | None) -> None:
    past.runs.appendleft(run)
    past.unanswered = 0
    past.cancelled += run.outcome == Outcome.CANCELLED
    if run.failed == 1.0:
        past.failed += 1
        past.last_fail = run.end
        past.streak = min(max(past.streak, 0) + 1, 127)
    elif run.failed == 0.0:
        past.completed += 1
        past.streak = max(min(past.streak, 0) - 1, -127)
    if not math.isnan(run.failed):
        past.fast = run.failed if math.isnan(past.fast) else past.fast + 0.25 * (run.failed - past.fast)
        past.slow = run.failed if math.isnan(past.slow) else past.slow + 0.03 * (run.failed - past.slow)
    if not math.isnan(seconds):
        log = math.log(max(seconds, 1.0))
        if math.isnan(past.mean):
            past.mean, past.var = log, 0.0
        else:
            step = log - past.mean
            past.mean += 0.2 * step
            past.var = (1.0 - 0.2) * (past.var + 0.2 * (step * step))
    if peak is not None:
        past.peaks.appendleft(_half(peak / 2**28))


def _keys(request: JobRequest) -> list[tuple[Any, ...]]:
    fields = {"name": _folded(request.name)}
    return [(key.name, *(fields.get(part, getattr(request, part)) for part in key.parts)) for key in KEYS]


def _kinds(request: JobRequest) -> dict[str, tuple[Any, ...]]:
    """Return what a user's runs are compared by."""
    name, limit = _folded(request.name), request.time_limit_s
    return {
        "name": (name,), "shape": (request.cpus, request.nodes, request.gpus, limit),
        "exact": (name, request.cpus, limit, request.mem_b, request.partition, request.qos),
    }  # fmt: skip


def _folded(name: str) -> str:
    """Return 64 characters of a name in lower case, with "#" for its numbers where it has a letter."""
    text = name[:64].lower()
    if not any(c.isalpha() for c in text):
        return text
    return "".join("#" if number else "".join(part) for number, part in groupby(text, str.isdecimal))


def _of_request(request: JobRequest) -> dict[str, float]:
    limit, nodes, cpus, mem = (
        NAN if v is None else float(v) for v in (request.time_limit_s, request.nodes, request.cpus, request.mem_b)
    )
    gpus, now, bytes_ = float(request.gpus), request.submit, _single(mem)
    return {
        "limit": limit, "nodes": nodes, "cpus": cpus, "mem": mem, "gpus": gpus,
        "is_array": float(request.is_array), "interactive": float(request.interactive),
        **dict(zip(NAME_FACTS, name_facts(request.name), strict=True)),
        **dict(zip(SCRIPT_FACTS, script_facts(request.script), strict=True)),
        "mem_per_cpu": _ratio(bytes_, cpus), "cpus_per_node": _ratio(cpus, nodes), "cpus_per_gpu": _ratio(cpus, gpus),
        "mem_per_gpu": _ratio(bytes_, gpus), "gpus_per_node": _ratio(gpus, nodes), "hour": now % 86400 / 3600,
        "weekday": (now - 4 * 86400) % (7 * 86400) / 86400, "limit_past_hour": limit % 3600,
        "limit_past_day": limit % 86400,
    }  # fmt: skip


def _of_past(past: Past, request: JobRequest) -> dict[str, float]:
    limit = NAN if request.time_limit_s is None else float(request.time_limit_s)
    cpus = NAN if request.cpus is None else float(request.cpus)
    mem = NAN if request.mem_b is None else _single(request.mem_b)
    minutes, limit = _single(limit / 60.0), _single(limit)
    runs, now = list(past.runs), request.submit
    times = [run.run * 60.0 for run in runs]
    known = [time for time in times if not math.isnan(time)]
    longest, shortest = max(known, default=NAN), min(known, default=NAN)
    newest = runs[0] if runs else Run(0, Outcome.UNKNOWN, NAN, NAN, NAN, late=False)
    peaks = [peak * 2**28 for peak in past.peaks]
    values = {
        "failed_8": sum(run.failed == 1.0 for run in runs), "completed_8": sum(run.failed == 0.0 for run in runs),
        "late_8": sum(run.late for run in runs), "fail_streak": past.streak, "fail_fast": past.fast,
        "fail_slow": past.slow, "cancelled": past.cancelled, "ended": past.ended,
        "fail_all": _ratio(past.failed, past.failed + past.completed), "run_max": longest,
        "run_max_of_limit": _ratio(longest, limit), "run_min": shortest, "run_min_of_limit": _ratio(shortest, limit),
        "peak_max": max(peaks, default=NAN), "peak_max_of_asked": _ratio(max(peaks, default=NAN), mem),
        "peak_1": peaks[0] if peaks else NAN, "peak_1_of_asked": _ratio(peaks[0] if peaks else NAN, mem),
        "share_1": _ratio(newest.run, newest.limit), "last_limit": _ratio(newest.limit, minutes),
        "last_cpus": _ratio(newest.cpus, cpus), "run_mean": past.mean, "run_var": past.var, "running": past.running,
        "queued": past.queued, "burst": past.burst, "unanswered": past.unanswered,
        "sent_limit": _ratio(past.sent[0], minutes), "sent_cpus": _ratio(past.sent[1], cpus),
        "since_submit": NAN if past.last_submit is None else now - past.last_submit,
        "since_fail": NAN if past.last_fail is None else now - past.last_fail,
        "since_end": now - newest.end if runs else NAN, "gpu_used": past.use[0],
        "gpu_active": past.use[1], "gpu_active_share": past.active_share,
    }  # fmt: skip
    for place in (1, 2, 3):
        values[f"fail_{place}"] = runs[place - 1].failed if len(runs) >= place else NAN
        values[f"run_{place}"] = times[place - 1] if len(runs) >= place else NAN
        values[f"run_{place}_of_limit"] = _ratio(values[f"run_{place}"], limit)
    return {name: float(value) for name, value in values.items()}


def _ratio(part: float, whole: float) -> float:
    """Return part by whole; NaN where one is not known or the whole is nothing."""
    return NAN if whole == 0 else part / whole


def _single(value: float) -> float:
    """Return the value as a float32 holds it: the arithmetic of vectors."""
    return float(np.float32(value))


def _half(value: float) -> float:
    """Return the value as a float16 holds it."""
    if math.isnan(value):
        return NAN
    rounded: float = struct.unpack("<e", struct.pack("<e", min(max(value, 0.0), 65504.0)))[0]
    return rounded
