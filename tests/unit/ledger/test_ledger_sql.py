"""The ledger in SQL, thousands of runs at once, against its plain definition, one device after the other."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.ledger import plain_ledger as plain
from tests.unit.ledger.builders import GIB, SETTINGS, T0, job, judge_many

from gpuwaste.ledger.findings import causes
from gpuwaste.ledger.judged_run import JudgedRun, judged_last
from gpuwaste.ledger.ledger import DeviceLedger, DeviceUse
from gpuwaste.ledger.run_judging import job_ledgers
from gpuwaste.ledger.tally import ENERGY, Tally
from gpuwaste.slurm.accounting.job_record import JobRecord

pytestmark = pytest.mark.long

NOW = T0 + 8000
OTHER = replace(SETTINGS, low_below_pct=50.0, underused_below_pct=60.0, finding_min_s=60.0, min_coverage=0.3)
RULES = (SETTINGS, OTHER)
WINDOWS = ((0, None), (T0 + 1000, T0 + 5000))


def an_energy(rng: random.Random, seen_ms: int) -> dict[str, Any]:
    """Return what is known of a GPU's energy: nothing, joules alone, or with the idle part."""
    if rng.random() < 0.3:
        return {}
    found = {"energy_j": 1000.0, "energy_ms": rng.choice([seen_ms, seen_ms // 2])}
    return found if rng.random() < 0.3 else found | {"split_j": 800.0, "idle_energy_j": rng.choice([0.0, 128.0])}


def a_cpu_energy(rng: random.Random, seen_ms: int, span_ms: int) -> dict[str, Any]:
    """Return what is known of the energy of CPUs: nothing, or joules and their time, longer than the span at times."""
    return {} if rng.random() < 0.5 else {"cpu_energy_j": 512.0, "cpu_energy_ms": rng.choice([seen_ms, span_ms * 2])}


def a_use(rng: random.Random, gpu: int, span_ms: int) -> DeviceUse:
    """Return anything that hours may say of a GPU, added up; more than its allocation at times."""
    seen_ms = int(span_ms * rng.choice([0, 0.3, 0.9, 1, 1, 1, 1.2]))
    cuts = sorted(rng.randint(0, seen_ms) for _ in range(6))
    idle, low, moderate, high, gap, mig, suspended = (b - a for a, b in zip([0, *cuts], [*cuts, seen_ms], strict=True))
    if rng.random() < 0.5:  # of one class as a whole
        idle, low, moderate, high = rng.sample([idle + low + moderate + high, 0, 0, 0], 4)
        gap = mig = suspended = 0
    known = idle + low + moderate + high
    few = rng.random() < 0.5
    return DeviceUse(
        node=rng.choice(["gpu1", "gpu1", "gpu1", "gpu2", "other"]),
        gpu_uuid=rng.choice(["GPU-", "GPU-", "missing:"]) + str(gpu),
        share=rng.choice([1.0, 1.0, 1.0, 0.5]),
        t0_ms=T0 * 1000,
        t1_ms=T0 * 1000 + seen_ms,
        final=rng.random() < 0.7,
        known_ms=known,
        idle_ms=idle,
        low_ms=low,
        high_ms=high,
        pct_ms=low * (2 if few else 20) + moderate * 50 + high * 90,
        idle_run_ms=rng.choice([idle, idle, idle // 2]),
        suspended_ms=suspended,
        proc_seen=rng.random() < 0.6,
        mem_max_b=rng.choice([None, 0, 4 * GIB, 30 * GIB]),
        mem_total_b=rng.choice([None, 0, 40 * GIB, 40 * GIB]),
        **an_energy(rng, seen_ms),
        **a_cpu_energy(rng, seen_ms, span_ms),
        last_active_ms=rng.choice([None, T0 * 1000 + rng.randint(0, seen_ms)]),
        hang_ms=rng.choice([0, 0, high]),
        cpu_s=rng.choice([None, 20_000.0]),
        cpu_known_ms=3_600_000,
        host_mem_max_b=rng.choice([None, 8 * GIB]),
        map_source=rng.choice(["prolog", "prolog", "cgroup"]),
        confidence=rng.choice(["confirmed", "confirmed", "conflict"]),
        unknown_reason=["gap", "mig", "gap"] if gap + mig else [],
        unknown_ms=[gap // 3, mig, gap - gap // 3] if gap + mig else [],
    )


def a_run(rng: random.Random, number: int) -> tuple[JobRecord, list[DeviceUse]]:
    """Return a run of up to two hours with up to five GPUs, of which accounting may know more or fewer."""
    seconds = rng.choice([0, 1, 31, 700, 3600, 7200])
    record = job(
        number, None if rng.random() < 0.2 else seconds, gpus=rng.choice([None, 0, 1, 1, 2, 4]),
        nodes=rng.choice(["gpu1", "gpu[1-2]", "gpu[", ""]), interactive=rng.random() < 0.2,
        cpus=rng.choice([None, 0, 8]), suspended_s=rng.choice([0, 0, 100]),
        max_rss_b=rng.choice([None, GIB]), n_nodes=rng.choice([None, 1, 2]),
    )  # fmt: skip
    if rng.random() < 0.2:
        record = replace(record, state="FAILED")
    span_ms = 1000 * (NOW - T0 if record.end is None else seconds)
    return record, [a_use(rng, gpu, span_ms) for gpu in range(rng.randint(0, 5))]


def said(device: DeviceLedger) -> dict[str, Any]:
    """Return what SQL says of a device."""
    names = ("alloc_ms", "known_ms", "pending_ms", "over_ms", "idle_run_ms", "wasted_ms", "untouched", "under_used")
    parts = {name: getattr(device, f"{name}_ms") for name in plain.CUT_ORDER}
    parts |= {"wasted_j": pytest.approx(device.wasted_j), "energy_ms": device.use.energy_ms}
    parts |= {"cpu_energy_ms": device.use.cpu_energy_ms}
    rest = {"unknown": device.unknown, "exempt": device.exempt, "level": str(device.level), "of": device.use.gpu_uuid}
    return {name: getattr(device, name) for name in names} | parts | rest | {"due": device.due_coverage}


def expected(device: plain.PlainDevice, record: JobRecord, rules: Any) -> dict[str, Any]:
    """Return what the definition says of it."""
    names = ("alloc_ms", "known_ms", "pending_ms", "over_ms", "idle_run_ms", "wasted_ms", "untouched")
    return {
        **{name: getattr(device, name) for name in names},
        **device.parts,
        "wasted_j": device.wasted_j,
        "energy_ms": device.energy_ms,
        "cpu_energy_ms": device.cpu_energy_ms,
        "under_used": plain.under_used(device, record, rules),
        "unknown": device.unknown,
        "exempt": plain.exempt(device, record, rules),
        "level": plain.level(device, rules),
        "of": device.use.gpu_uuid,
        "due": plain.due_coverage(device, record),
    }


def added(devices: list[dict[str, Any]], uses: list[DeviceUse]) -> Tally:
    """Add devices up."""
    unknown: Counter[str] = Counter()
    exempt: Counter[str] = Counter()
    for device in devices:
        unknown.update(device["unknown"])
        exempt.update(device["exempt"])
    energy: dict[str, list[Any]] = {
        name: [value for of in uses if (value := getattr(of, name)) is not None]
        for name in ("energy_j", "split_j", "cpu_energy_j")
    }
    energy |= {
        name: [value for device in devices if (value := device[name]) is not None]
        for name in ("energy_ms", "wasted_j", "cpu_energy_ms")
    }
    measured: dict[str, Any] = {name: sum(values) if values else None for name, values in energy.items()}
    named = ("idle", "low", "moderate", "high", "suspended")
    return Tally(
        devices=len(devices),
        **{name: sum(d[name] for d in devices) for name in ("alloc_ms", "pending_ms", "idle_run_ms", "wasted_ms")},
        **{f"{name}_ms": sum(d[name] for d in devices) for name in named},
        untouched_ms=sum(d["idle"] for d in devices if d["untouched"]),
        pct_ms=sum(use.pct_ms for use in uses),
        seen_ms=sum(use.known_ms for use in uses),
        **measured,
        unknown=dict(unknown),
        exempt=dict(exempt),
    )


def check_run(
    run: JudgedRun, own: list[dict[str, Any]], shared: list[dict[str, Any]], uses: list[list[DeviceUse]]
) -> None:
    """Compare the row of a run with the sums over its devices."""
    expected_own = added(own, uses[0])
    assert run.own.wasted_j == pytest.approx(expected_own.wasted_j)
    assert replace(run.own, wasted_j=None) == replace(expected_own, wasted_j=None)
    no_energy: dict[str, Any] = dict.fromkeys(ENERGY[1:])
    of_shares = replace(added(shared, uses[1]), **no_energy) if shared else None
    assert run.shared == of_shares
    levels = ("none", "low", "moderate", "high", "unknown")
    assert list(run.level_devices) == [sum(d["level"] == level for d in own) for level in levels]
    assert list(run.level_ms) == [sum(d["alloc_ms"] for d in own if d["level"] == level) for level in levels]
    assert run.under_devices == sum(d["under_used"] is True for d in own)
    assert run.under_ms == sum(d["alloc_ms"] for d in own if d["under_used"])
    assert run.asked_devices == sum(d["under_used"] is not None for d in own)
    assert run.conflict == any(use.confidence == "conflict" for use in uses[0])


@pytest.mark.parametrize("rules", RULES, ids=["usual", "other"])
@settings(max_examples=examples(10), deadline=None)
@given(seed=st.integers(0, 2**32), window=st.sampled_from(WINDOWS))
@example(seed=444, window=(0, None))  # a reason that is told of no time first, and of a millisecond last
def test_each_number_of_a_run_is_that_of_the_definition(rules: Any, seed: int, window: tuple[int, int | None]) -> None:
    """Every device's classes, waste, reasons and level, the sums of its run, and which runs have findings."""
    rng = random.Random(seed)
    runs = [a_run(rng, number) for number in range(1, 101)]
    db = judge_many(runs, rules, NOW, window)
    rows = judged_last(db)
    for (record, uses), (_, ledger), run in zip(runs, job_ledgers(db), rows, strict=True):
        own, shared, beyond, span = plain.judge(record, uses, rules, NOW, window)
        assert (ledger.beyond, ledger.begin_ms, ledger.until_ms) == (beyond, span.begin_ms, span.until_ms)
        wanted = [[expected(device, record, rules) for device in some] for some in (own, shared)]
        assert [said(device) for device in ledger.devices] == wanted[0]
        assert [said(device) for device in ledger.shared] == wanted[1]
        assert ledger.due_coverage == min((d["due"] for d in wanted[0]), default=1.0)
        check_run(run, wanted[0], wanted[1], [[device.use for device in some] for some in (own, shared)])
        assert run.causes == [finding.to_json() for finding in causes(ledger, rules)]
