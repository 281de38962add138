"""The example of docs/explanation/ledger.md: agent, store and ledger make of its first table exactly its second."""

import re
from pathlib import Path

from tests.unit.ledger import builders

from gpuwaste.agent.accumulator import Accumulator, State
from gpuwaste.agent.readings import GpuAllocation
from gpuwaste.core.units import parse_duration_s
from gpuwaste.ledger.hour import AllocationHour, hour_from_wire
from gpuwaste.ledger.ledger import DeviceLedger, JobLedger

PAGE = (Path(__file__).parents[2] / "docs/explanation/ledger.md").read_text(encoding="utf-8")
_MINUTE_MS = 60_000


def rows_of(first: str) -> list[list[str]]:
    """Return the cells of the table whose header begins with these cells."""
    table = re.search(rf"^\| {re.escape(first)} .*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
    assert table, first
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def ledger() -> JobLedger:
    """Send the example's first table through the agent's accumulator and the hub's store."""
    record = builders.job(gpus=2)
    t0_ms = builders.T0 * 1000
    held: dict[str, Accumulator] = {}
    for gpu, _, until, what in rows_of("GPU | from"):
        holding = GpuAllocation(7, gpu, t0_ms * 1000, record.run_key)
        one = held.setdefault(gpu, Accumulator("gw", "gpu1", holding, t0_ms, t0_ms))
        state: State = int(what.removesuffix(" %")) if what.endswith(" %") else what
        one.advance(t0_ms + (parse_duration_s(until) or 0) * 1000, state)
    sent: list[AllocationHour] = []
    for gpu, one in held.items():
        for open_hour in one.hours.values():
            row = open_hour.snapshot(record.run_key, final=True)
            row.proc_seen = gpu == "GPU-0"
            sent.append(hour_from_wire(row.to_wire()))
    (found,) = builders.load(builders.store([record], sent))
    return found


def minutes(ms: float) -> str:
    return f"{ms / _MINUTE_MS:g}"


def printed(device: DeviceLedger) -> list[str]:
    """Return a device as the page prints it."""
    return [
        device.use.gpu_uuid,
        *map(minutes, (device.idle_ms, device.low_ms, device.moderate_ms, device.high_ms, device.unknown_ms)),
        minutes(device.wasted_ms),
        f"{device.mean_pct:.1f} %",
        str(device.level),
        "yes" if device.untouched else "no",
        f"{device.coverage:.0%}".replace("%", " %"),
    ]


def test_the_example_is_what_the_code_computes() -> None:
    """Each figure of the example's second table, and of the words below it, is computed from the first."""
    job = ledger()
    assert [printed(device) for device in job.devices] == rows_of("GPU | idle")
    assert [device.under_used for device in job.devices] == [False, True]
    assert f"wasted {minutes(job.wasted_ms)} of {minutes(job.alloc_ms)} GPU-minutes" in PAGE


def test_the_limits_named_are_the_defaults() -> None:
    """The thresholds that the page names in brackets are the defaults of the configuration."""
    for key, value in re.findall(r"`([a-z_]+)` \((\d+) [%s]\)", PAGE):
        default = getattr(builders.SETTINGS, key)
        assert float(value) == (default * 100 if default < 1 else default), key
