"""AllocationHour: what one allocation of one GPU did in one hour, as it travels from agent to hub.

The wire form (CONTRACTS.md, "AllocationHour") has seconds with three decimals; in memory all durations are whole
milliseconds, so that the ledger adds up exactly.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

from gpuwaste.core.errors import ParseError
from gpuwaste.core.run import RunKey

SCHEMA: Final = 1
HOUR_S: Final = 3600
HOUR_MS: Final = HOUR_S * 1000
_SLACK_MS: Final = 1000  # rounding of t0 and t1 to milliseconds, twice, and a clock slewed by NTP
_NAME = re.compile(r"[A-Za-z0-9_.:\-/]{1,128}")
_REASON = re.compile(r"[a-z0-9_:\-]{1,64}")
_MAX_I64: Final = 2**63 - 1
MISSING_PREFIX: Final = "missing:"  # of the uuid of a GPU that Slurm has and NVML lacks
MAX_SEQ: Final = 10**9  # an agent counts from 1, a few times an hour; a far greater one could never be corrected


@dataclass(slots=True)
class AllocationHour:
    """One allocated GPU in one UTC hour; upserted by (run_key, node, gpu_uuid, hour_utc), the highest seq wins.

    util_ms maps a utilization percent 0..100 to milliseconds; unknown_ms maps a reason to milliseconds.
    """

    run_key: RunKey
    node: str
    gpu_uuid: str
    hour_utc: int  # UTC seconds, a multiple of 3600
    seq: int
    t0_ms: int  # first and last instant of the allocation in this hour, UTC milliseconds
    t1_ms: int
    share: float = 1.0  # 1 for a GPU of its own, less for shards and MPS
    final: bool = False
    util_ms: dict[int, int] = field(default_factory=dict)
    idle_run_ms: int = 0  # the part of util_ms[0] in runs of zeros of at least 60 s
    unknown_ms: dict[str, int] = field(default_factory=dict)
    suspended_ms: int = 0
    proc_seen: bool = False
    mem_max_b: int | None = None
    mem_total_b: int | None = None
    energy_j: float | None = None
    last_active_ms: int | None = None  # UTC ms of the last covered instant with utilization above 0
    power_w_at_full: float | None = None  # mean power while utilization was at least 95 %
    power_limit_w: float | None = None
    sm_ratio_at_full: float | None = None
    cpu_s: float | None = None  # CPU seconds of the job's processes on this node while covered
    host_mem_max_b: int | None = None
    map_source: str = "none"
    confidence: str = "none"

    @property
    def key(self) -> tuple[str, int, int, str, str, int]:
        """The row's identity in the hub."""
        run = self.run_key
        return (run.cluster, run.job_id, run.start, self.node, self.gpu_uuid, self.hour_utc)

    @property
    def known_ms(self) -> int:
        """Milliseconds with a utilization."""
        return sum(self.util_ms.values())

    def to_wire(self) -> dict[str, Any]:
        """Return the row as one JSON object of schema 1."""
        run = self.run_key
        return {
            "schema": SCHEMA,
            "cluster": run.cluster,
            "jobid": run.job_id,
            "start": run.start,
            "node": self.node,
            "gpu_uuid": self.gpu_uuid,
            "hour_utc": self.hour_utc,
            "seq": self.seq,
            "final": self.final,
            "share": self.share,
            "t0": self.t0_ms / 1000,
            "t1": self.t1_ms / 1000,
            "seconds": {str(pct): ms / 1000 for pct, ms in sorted(self.util_ms.items())},
            "idle_run_s": self.idle_run_ms / 1000,
            "unknown_s": {reason: ms / 1000 for reason, ms in sorted(self.unknown_ms.items())},
            "suspended_s": self.suspended_ms / 1000,
            "proc_seen": self.proc_seen,
            "mem_max_b": self.mem_max_b,
            "mem_total_b": self.mem_total_b,
            "energy_j": self.energy_j,
            "last_active": None if self.last_active_ms is None else self.last_active_ms / 1000,
            "power_w_at_full": self.power_w_at_full,
            "power_limit_w": self.power_limit_w,
            "sm_ratio_at_full": self.sm_ratio_at_full,
            "cpu_s": self.cpu_s,
            "host_mem_max_b": self.host_mem_max_b,
            "map_source": self.map_source,
            "confidence": self.confidence,
        }


def hour_from_wire(row: object) -> AllocationHour:
    """Check one JSON object from an agent and return its row.

    Raises ParseError naming the field that is missing, of the wrong type or impossible. Unknown fields are ignored:
    a newer agent may send more than this version reads.
    """
    fields = _Fields(row)
    schema = fields.integer("schema", 1, 1_000_000)
    if schema > SCHEMA + 1:
        raise ParseError(f"hours row: schema {schema} is newer than this hub understands ({SCHEMA}): update the hub")
    hour = AllocationHour(
        run_key=RunKey(
            fields.name("cluster"), fields.integer("jobid", 1, 2**32 - 1), fields.integer("start", 1, 2**40)
        ),
        node=fields.name("node"),
        gpu_uuid=fields.name("gpu_uuid"),
        hour_utc=fields.integer("hour_utc", 0, 2**40),
        seq=fields.integer("seq", 0, MAX_SEQ),
        final=fields.flag("final"),
        share=fields.number("share", 0.0, 1.0),
        t0_ms=fields.millis("t0", 2**40),
        t1_ms=fields.millis("t1", 2**40),
        util_ms={_percent(k): v for k, v in fields.millis_map("seconds").items()},
        idle_run_ms=fields.millis("idle_run_s", HOUR_S + 1),
        unknown_ms=fields.millis_map("unknown_s"),
        suspended_ms=fields.millis("suspended_s", HOUR_S + 1),
        proc_seen=fields.flag("proc_seen"),
        mem_max_b=fields.optional_int("mem_max_b"),
        mem_total_b=fields.optional_int("mem_total_b"),
        energy_j=fields.optional("energy_j", 1e15),
        last_active_ms=_to_ms(fields.optional("last_active", 2.0**40)),
        power_w_at_full=fields.optional("power_w_at_full", 1e9),
        power_limit_w=fields.optional("power_limit_w", 1e9),
        sm_ratio_at_full=fields.optional("sm_ratio_at_full", 1.0),
        cpu_s=fields.optional("cpu_s", 1e12),
        host_mem_max_b=fields.optional_int("host_mem_max_b"),
        map_source=fields.name("map_source", "none"),
        confidence=fields.name("confidence", "none"),
    )
    _check_sums(hour)
    return hour


def _check_sums(hour: AllocationHour) -> None:
    """Refuse a row whose parts cannot fit into its hour."""
    start_ms = hour.hour_utc * 1000
    if hour.hour_utc % HOUR_S or not start_ms <= hour.t0_ms <= hour.t1_ms <= start_ms + HOUR_MS:
        raise ParseError(f"hours row of {hour.run_key}: t0, t1 lie outside the hour {hour.hour_utc}")
    span = hour.t1_ms - hour.t0_ms
    total = hour.known_ms + sum(hour.unknown_ms.values()) + hour.suspended_ms
    if total > span + _SLACK_MS:
        raise ParseError(f"hours row of {hour.run_key}: its seconds add up to {total / 1000}, more than {span / 1000}")
    if hour.idle_run_ms > hour.util_ms.get(0, 0):
        raise ParseError(f"hours row of {hour.run_key}: idle_run_s is more than the seconds at 0 %")


def _percent(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= 100):  # noqa: PLR2004 percent
        raise ParseError(f"hours row: {text[:20]!r} is no utilization percent 0..100")
    return int(text)


def _to_ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


class _Fields:
    """Typed access to one untrusted JSON object."""

    def __init__(self, row: object) -> None:
        if not isinstance(row, dict):
            raise ParseError("hours row: not a JSON object")
        self._row: dict[str, Any] = row

    def _bad(self, key: str, what: str) -> ParseError:
        return ParseError(f"hours row: {key}={str(self._row.get(key))[:60]!r} is {what}")

    def number(self, key: str, low: float, high: float) -> float:
        value = self._row.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._bad(key, "no number")
        if isinstance(value, float) and not math.isfinite(value):
            raise self._bad(key, "no number")
        if not low <= value <= high:
            raise self._bad(key, f"outside {low}..{high}")
        return float(value)

    def integer(self, key: str, low: int, high: int) -> int:
        value = self._row.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._bad(key, f"no whole number in {low}..{high}")
        return value

    def millis(self, key: str, high_s: int) -> int:
        return round(self.number(key, 0.0, float(high_s)) * 1000)

    def optional(self, key: str, high: float) -> float | None:
        return None if self._row.get(key) is None else self.number(key, 0.0, high)

    def optional_int(self, key: str) -> int | None:
        return None if self._row.get(key) is None else self.integer(key, 0, _MAX_I64)

    def flag(self, key: str) -> bool:
        value = self._row.get(key)
        if not isinstance(value, bool):
            raise self._bad(key, "neither true nor false")
        return value

    def name(self, key: str, default: str | None = None) -> str:
        value = self._row.get(key, default)
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise self._bad(key, "no name of 1 to 128 letters, digits and _.:-/")
        return value

    def millis_map(self, key: str) -> dict[str, int]:
        value = self._row.get(key)
        if not isinstance(value, dict) or len(value) > 128:  # noqa: PLR2004 101 percents, or a few reasons
            raise self._bad(key, "no map of seconds")
        checked = _Fields(value)
        for name in value:
            if not _REASON.fullmatch(name):
                raise self._bad(key, "a map with an impossible key")
        return {name: checked.millis(name, HOUR_S + 1) for name in value}
