"""The rows of a fleet of nodes: deterministic, like those of training jobs, and what is compared of each.

Every node has eight GPUs, four for each of two jobs at a time; jobs last 6 to 36 hours, one after the other.
"""

import hashlib
import random
from collections.abc import Iterator
from functools import cache
from typing import Final

from gpuwaste.core.units import HOUR_S
from gpuwaste.ledger.hour import AllocationHour
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.run_key import RunKey

CLUSTER: Final = "gw"
GPUS: Final = 8
START: Final = 1_700_000_000 // HOUR_S * HOUR_S
_HOUR_MS: Final = HOUR_S * 1000
_JOBS: Final = 2  # at a time on each node
_PATTERNS: Final = 64
_LONGEST_H: Final = 36
_SHORTEST_H: Final = 6

CHECK_SQL: Final = (
    "md5(concat_ws(' ', seq, final, t0_ms, t1_ms, pct, util_ms, idle_run_ms, unknown_reason, unknown_ms,"
    " suspended_ms, proc_seen, mem_max_b, mem_total_b, round(energy_j * 1000)::BIGINT, last_active_ms,"
    " round(power_w_at_full * 1000)::BIGINT, round(cpu_s * 1000)::BIGINT, host_mem_max_b, map_source, confidence))"
)
"""DuckDB's expression over a stored row that equals `check` of the row that was sent."""


def node_name(node: int) -> str:
    """Return the name of a node by its number."""
    return f"n{node:04d}"


def rows_of_hour(node: int, hour: int, version: int, *, final: bool, minutes: int = 60) -> list[AllocationHour]:
    """Return the rows of a node's GPUs in hour number `hour`, of which `minutes` have passed."""
    return [_row(node, gpu, hour, version, final=final, minutes=minutes) for gpu in range(GPUS)]


def jobs_of(node: int, hours: int) -> Iterator[JobRecord]:
    """Yield the runs that a node's rows of `hours` hours belong to, as accounting tells them while they run."""
    length = _job_hours(node)
    for number in range((hours + length - 1) // length):
        for half in range(_JOBS):
            start = START + number * length * HOUR_S
            yield JobRecord(
                CLUSTER, _job_id(node, number, half), submit=start - 60,
                user=f"u{node % 97}", account=f"a{node % 7}", partition="gpu", qos="normal", name="train",
                time_limit_s=_LONGEST_H * HOUR_S, req_tres="cpu=16,mem=64G,gres/gpu=4",
                start=start, nodes=node_name(node), n_nodes=1, cpus=16, gpus=GPUS // _JOBS, state="RUNNING",
            )  # fmt: skip


def check(row: AllocationHour) -> str:
    """Return the checksum of all that a row tells beside its key."""
    util, unknown = sorted(row.util_ms.items()), sorted(row.unknown_ms.items())
    values = (
        row.seq, _text(row.final), row.t0_ms, row.t1_ms, [p for p, _ in util], [ms for _, ms in util],
        row.idle_run_ms, f"[{', '.join(r for r, _ in unknown)}]", [ms for _, ms in unknown], row.suspended_ms,
        _text(row.proc_seen), row.mem_max_b, row.mem_total_b, _thousandths(row.energy_j), row.last_active_ms,
        _thousandths(row.power_w_at_full), _thousandths(row.cpu_s), row.host_mem_max_b, row.map_source, row.confidence,
    )  # fmt: skip
    text = " ".join(str(value) for value in values if value is not None)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _row(node: int, gpu: int, hour: int, version: int, *, final: bool, minutes: int) -> AllocationHour:
    length = _job_hours(node)
    number = hour // length
    start = START + hour * HOUR_S
    t0_ms, span_ms = start * 1000, minutes * 60_000
    weights, gap_ms = _pattern((node * 31 + gpu * 7 + hour * 13) % _PATTERNS)
    gap_ms = min(gap_ms, span_ms // 10)
    util_ms = {pct: int((span_ms - gap_ms) * weight) for pct, weight in weights}
    return AllocationHour(
        RunKey(CLUSTER, _job_id(node, number, gpu * _JOBS // GPUS), START + number * length * HOUR_S),
        node_name(node), f"GPU-{node:08x}-{gpu:04d}-4222-8333-444444444444", start, version, t0_ms, t0_ms + span_ms,
        util_ms=util_ms, idle_run_ms=util_ms.get(0, 0) // 2, unknown_ms={"gap": gap_ms} if gap_ms else {},
        final=final, proc_seen=True, mem_max_b=(20 + (node + hour) % 50) * 1024**3, mem_total_b=80 * 1024**3,
        energy_j=float(1000 * (hour % 977) + 3 * minutes + gpu), last_active_ms=t0_ms + span_ms - 1000 * gpu,
        power_w_at_full=310.5 + gpu, power_limit_w=400.0, cpu_s=50.0 * minutes + node, host_mem_max_b=10**10 + hour,
        map_source="prolog", confidence="confirmed",
    )  # fmt: skip


def _job_hours(node: int) -> int:
    return _SHORTEST_H + node * 7 % (_LONGEST_H - _SHORTEST_H + 1)


def _job_id(node: int, number: int, half: int) -> int:
    return 1_000_000 + node * 1000 + number * _JOBS + half


@cache
def _pattern(number: int) -> tuple[tuple[tuple[int, float], ...], int]:
    """Return the shares of an hour by percent, and the milliseconds of it that nobody saw."""
    rng = random.Random(number)  # noqa: S311 a fleet is repeatable
    weights = [rng.random() for _ in range(rng.randint(6, 18))]
    percents = rng.sample(range(101), len(weights))
    shares = tuple((pct, weight / sum(weights)) for pct, weight in zip(percents, weights, strict=True))
    return shares, rng.choice((0, 0, 0, 20_000))


def _thousandths(value: float | None) -> int | None:
    return None if value is None else round(value * 1000)


def _text(value: bool) -> str:
    return "true" if value else "false"
