"""What the load programs say that they did: the truth that tests hold the product's figures against."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

# Events after which a GPU's activity is what the event says, and those that end it.
_OPENING = frozenset({"start", "phase", "resume"})
_CLOSING = frozenset({"suspend", "end"})


@dataclass(frozen=True, slots=True)
class OracleEvent:
    """One change of one load program's activity on one GPU."""

    t_utc: float  # seconds since the epoch
    mono: float  # seconds of the steady clock
    pid: int
    job_id: int | None
    restart: int
    step: int | None
    node: str
    minor: int
    uuid: str  # of the GPU, the parent for a MIG device
    mig_uuid: str  # "" for a whole GPU
    util: float  # duty cycle in percent
    mem_mib: int
    power_w: int
    sm_ratio: float
    listed: bool  # whether NVML lists the process
    event: str  # start, phase, suspend, resume, end
    cpu_s: float | None = None  # CPU time of the program until then; None in logs of programs that did not write it


@dataclass(frozen=True, slots=True)
class OracleSpan:
    """A stretch of one activity; t1_utc is None when the log does not say when it ended (killed, or still running)."""

    event: OracleEvent
    t0_utc: float
    t1_utc: float | None


def _event(text: str) -> OracleEvent | None:
    """Parse one line; a torn one (full disk, crash of the machine) is None."""
    try:
        raw: dict[str, Any] = json.loads(text)
        return OracleEvent(**raw)
    except (json.JSONDecodeError, TypeError):
        return None


def read_oracle(directory: Path) -> list[OracleEvent]:
    """Read all logs (*.jsonl) of a directory, or one file; in order of time."""
    files = [directory] if directory.is_file() else sorted(directory.glob("**/*.jsonl"))
    lines = (line for file in files for line in file.read_text().splitlines())
    events = [event for line in lines if (event := _event(line)) is not None]
    return sorted(events, key=lambda e: e.mono)


def oracle_spans(events: Iterable[OracleEvent]) -> list[OracleSpan]:
    """Turn events into stretches of activity, per node, process and device."""
    streams: dict[tuple[str, int, str, str], list[OracleEvent]] = defaultdict(list)
    for event in events:
        streams[event.node, event.pid, event.uuid, event.mig_uuid].append(event)
    spans = []
    for stream in streams.values():
        following: list[OracleEvent | None] = [*stream[1:], None]
        for event, after in zip(stream, following, strict=True):
            if event.event in _OPENING:
                spans.append(OracleSpan(event, event.t_utc, after.t_utc if after else None))
    return sorted(spans, key=lambda s: s.t0_utc)


def oracle_seconds(
    events: Iterable[OracleEvent], uuid: str, t0: float, t1: float, *, open_end: float | None = None
) -> dict[float, float]:
    """Seconds of [t0, t1) (UTC) at each duty cycle of the GPU, or of the MIG device, with this UUID.

    The values add up to t1 - t0; the time in which nothing ran stands under 0. Several processes add up to at
    most 100. A span without an end counts up to `open_end`, or to t1 when that is not known.
    """
    until = t1 if open_end is None else open_end
    steps: list[tuple[float, float]] = [(t0, 0.0), (t1, 0.0)]
    for span in oracle_spans(events):
        if uuid not in {span.event.uuid, span.event.mig_uuid}:
            continue
        start, end = max(t0, span.t0_utc), min(t1, until if span.t1_utc is None else span.t1_utc)
        if end > start:
            steps += [(start, span.event.util), (end, -span.event.util)]
    steps.sort()
    seconds: dict[float, float] = defaultdict(float)
    level = 0.0
    for (at, change), (following, _) in pairwise(steps):
        level += change
        if following > at:
            seconds[min(100.0, round(level, 6))] += following - at
    return dict(seconds)
