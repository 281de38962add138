"""The ledger's rules, one by one."""

from dataclasses import replace

import pytest
from tests.unit.ledger.builders import GIB, T0, hour, job, judged, load, store, untouched, use

from gpuwaste.ledger.ledger import LedgerSettings, Level
from gpuwaste.ledger.tally import Tally


@pytest.mark.parametrize(
    ("mean", "level"),
    [(None, "unknown"), (0, "none"), (0.1, "low"), (32.9, "low"), (33, "moderate"), (66, "moderate"), (66.1, "high")],
)
def test_levels_are_the_thesis(mean: float | None, level: str) -> None:
    """0, below 33, 33 to 66, above 66 percent; no mean is unknown."""
    seen = use(util={}) if mean is None else replace(use(), pct_ms=int(mean * 3_600_000))
    assert judged(job(), seen).devices[0].level is Level(level)


def test_the_idle_time_of_an_untouched_gpu_counts_once() -> None:
    """Untouched time is idle time and idle runs at once, and wasted once."""
    (device,) = judged(job(), untouched()).devices
    assert device.untouched
    assert device.wasted_ms == device.idle_ms == 3_600_000


@pytest.mark.parametrize(("nodes", "counted"), [("gpu1", 1), ("gpu[1-2]", 1), ("", 2), ("gpu[", 2), ("gpu[1,7]", 2)])
def test_a_node_cannot_speak_for_another_node_s_job(nodes: str, counted: int) -> None:
    """What gpu7 says of a run that accounting has on other nodes changes nothing of it."""
    seen = [use(util={90: 3600}), use(1, 7200, {0: 7200}, node="gpu7")]
    ledger = judged(job(nodes=nodes, gpus=2), *seen)
    assert len([device for device in ledger.devices if device.use.gpu_uuid]) == counted
    if counted == 1:
        assert ledger == judged(job(nodes=nodes, gpus=2), seen[0])


def test_short_pauses_are_idle_and_no_waste() -> None:
    """Idle seconds outside runs of a minute are idle, not wasted."""
    (device,) = judged(job(), use(util={50: 3000, 0: 600}, idle_run_ms=120_000)).devices
    assert (device.idle_ms, device.wasted_ms) == (600_000, 120_000)


def test_a_gpu_with_a_process_is_not_untouched() -> None:
    """A process that never computes is waste by its idle runs, and the GPU was touched."""
    assert not judged(job(), untouched(proc_seen=True)).devices[0].untouched


@pytest.mark.parametrize(
    ("util", "state", "seconds", "want"),
    [
        ({4: 3600}, "COMPLETED", 3600, True),
        ({5: 3600}, "COMPLETED", 3600, False),
        ({4: 3600}, "FAILED", 3600, None),
        ({4: 30}, "COMPLETED", 30, None),
        ({4: 31}, "COMPLETED", 31, True),
        ({4: 2879}, "COMPLETED", 3600, None),
        ({4: 2880}, "COMPLETED", 3600, True),
    ],
)
def test_the_under_used_rule(util: dict[int, int], state: str, seconds: int, want: bool | None) -> None:
    """Mean below 5 %, ran over 30 s, completed, 80 % known; else it is not judged."""
    (device,) = judged(job(seconds=seconds, state=state), use(util=util)).devices
    assert device.under_used is want


def test_exempt_is_beside_the_waste_and_not_taken_off() -> None:
    """A memory-resident GPU and the grace of an interactive job are exempt parts of an unchanged waste."""
    resident = judged(job(), use(util={0: 3600}, proc_seen=True, mem_max_b=30 * GIB)).devices[0]
    assert (resident.wasted_ms, resident.exempt) == (3_600_000, {"memory_resident": 3_600_000})
    interactive = judged(job(interactive=True), untouched()).devices[0]
    assert (interactive.wasted_ms, interactive.exempt) == (3_600_000, {"interactive_grace": 1_800_000})


def test_shared_gpus_stand_apart() -> None:
    """A share of a GPU is in a ledger of its own and never waste of the job."""
    ledger = judged(job(gpus=0), untouched(share=0.25))
    assert ledger.devices == ()
    assert len(ledger.shared) == 1
    assert ledger.wasted_ms == 0


def test_accountings_suspension_is_not_unknown() -> None:
    """Suspended time that no agent reported is suspended by accounting's word."""
    (device,) = judged(job(suspended_s=600), use(seconds=3000)).devices
    assert (device.suspended_ms, device.unknown) == (600_000, {})


def test_what_a_node_saw_beyond_accounting_is_cut_idle_first() -> None:
    """An epilog's idle seconds do not become the job's: the sum is the allocation, and the excess is said."""
    (device,) = judged(job(), use(util={90: 3590, 0: 20})).devices
    assert device.alloc_ms == device.known_ms == 3_600_000
    assert (device.idle_ms, device.high_ms, device.over_ms) == (10_000, 3_590_000, 10_000)


def test_pending_is_apart_from_unknown() -> None:
    """Of a running job the last eighteen minutes may be on their way; what is older and missing is unknown."""
    running = job(seconds=None)
    (device,) = judged(running, use(seconds=600, final=False), now=T0 + 3600).devices
    assert (device.pending_ms, device.unknown) == (1_080_000, {"unreported": 1_920_000})
    (device,) = judged(running, now=T0 + 600).devices
    assert (device.pending_ms, device.unknown) == (600_000, {})
    (device,) = judged(job(seconds=3600), use(seconds=3500), now=T0 + 3601).devices
    assert (device.pending_ms, device.unknown) == (0, {"unreported": 100_000})


def test_gpus_beyond_accountings_count_do_not_count() -> None:
    """Of two GPUs where accounting has one, the best known one counts; the other is said and adds no second."""
    ledger = judged(job(gpus=1), use(1, 600), use(0))
    assert [(d.use.gpu_uuid, d.alloc_ms) for d in ledger.devices] == [("GPU-0", 3_600_000)]
    assert (ledger.beyond, ledger.alloc_ms) == (1, 3_600_000)
    assert judged(job(gpus=0), use(0)).devices == ()


def test_a_thousand_forged_gpus_take_no_place_of_a_real_one() -> None:
    """What is no GPU of the driver's list comes after the others."""
    forged = [use(0, gpu_uuid=f"missing:gpu1:{at}", util={}) for at in range(1024)]
    for uses in ((*forged, use(0, 60), use(1, 30)), (use(1, 30), use(0, 60), *forged)):
        ledger = judged(job(gpus=2), *uses)
        assert [d.use.gpu_uuid for d in ledger.devices] == ["GPU-0", "GPU-1"]
        assert (ledger.beyond, ledger.alloc_ms) == (1024, 7_200_000)


def test_thresholds_apply_to_history() -> None:
    """Another threshold moves the same stored seconds into another class, without a new report from a node."""
    record = job()
    db = store([record], [hour(record, 0, 0, {40: 3600})])
    (device,) = load(db)[0].devices
    assert device.moderate_ms == 3_600_000
    (device,) = load(db, settings=LedgerSettings(low_below_pct=50.0))[0].devices
    assert (device.low_ms, device.level) == (3_600_000, Level.LOW)


def test_a_row_is_a_hang_by_its_sm_ratio_or_else_its_power() -> None:
    """Full duty at a tenth of the SMs or less, or (unknown SMs) at a quarter of the power, is hang time."""
    cases = [
        ({"sm_ratio_at_full": 0.05, "power_w_at_full": 350.0}, 3_600_000),
        ({"sm_ratio_at_full": 0.6, "power_w_at_full": 60.0}, 0),
        ({"power_w_at_full": 90.0}, 3_600_000),
        ({"power_w_at_full": 110.0}, 0),
        ({}, 0),
    ]
    for changes, hang_ms in cases:
        record = job()
        row = hour(record, 0, 0, {100: 3600}, power_limit_w=400.0, **changes)
        assert load(store([record], [row]))[0].devices[0].use.hang_ms == hang_ms


def test_a_run_without_a_duration_is_judged() -> None:
    """A run that ended in the second in which it began has no GPU-time, and no division fails."""
    ledger = judged(job(seconds=0))
    assert ledger.coverage == 0
    assert ledger.mean_pct is None
    assert ledger.devices[0].coverage == 0


def test_profiling_of_a_run_is_weighted_by_its_time() -> None:
    """Hours of 15 min at 10 % and 45 min at 50 % of the SMs are 40 % over one hour; what one hour lacks is absent."""
    record = job(seconds=7200)
    one = hour(record, 0, 0, {90: 3600}, profiled_ms=900_000, sm_active=0.1, tensor_active=0.5, pcie_b=5, nvlink_b=7)
    two = hour(record, 0, 1, {90: 3600}, profiled_ms=2_700_000, sm_active=0.5, pcie_b=6, nvlink_b=0)
    use = load(store([record], [one, two]))[0].devices[0].use
    assert use.sm_active == pytest.approx(0.4)
    assert (use.profiled_ms, use.tensor_active, use.pcie_b, use.nvlink_b) == (3_600_000, None, 11, 7)
    without = load(store([record], [hour(record, 0, 0, {90: 3600})]))[0].devices[0].use
    assert (without.profiled_ms, without.sm_active, without.pcie_b) == (None, None, None)


@pytest.mark.parametrize("sm_active", [0.0, 1.0])
def test_a_lying_profile_changes_no_class_and_no_waste(sm_active: float) -> None:
    """Whatever an exporter says of SMs, idle, busy, hang and wasted time are those of NVML's values alone."""
    record = job()
    told = {"power_w_at_full": 350.0, "power_limit_w": 400.0}
    plain = hour(record, 0, 0, {0: 1800, 100: 1800}, **told)
    lied = replace(plain, profiled_ms=3_600_000, sm_active=sm_active, dram_active=sm_active, pcie_b=2**50)
    seen = []
    for row in (plain, lied):
        ledger = load(store([record], [row]))[0]
        (device,) = ledger.devices
        seen.append((device.idle_ms, device.high_ms, device.use.hang_ms, ledger.wasted_ms, device.level))
    assert seen[0] == seen[1]


def test_wasted_energy_is_at_the_gpu_s_own_idle_power() -> None:
    """Of 600 idle seconds at 60 W 120 are wasted: 7200 J of 36 kJ, and the measured time is said."""
    record = job()
    told = {"energy_j": 636_000.0, "energy_ms": 3_600_000, "idle_energy_j": 36_000.0}
    row = hour(record, 0, 0, {50: 3000, 0: 600}, idle_run_ms=120_000, proc_seen=True, **told)
    (device,) = load(store([record], [row]))[0].devices
    assert device.wasted_j == pytest.approx(7_200)
    found = Tally.of([device]).to_json()
    names = ("energy_j", "energy_measured_s", "wasted_energy_j")
    assert [found[name] for name in names] == pytest.approx([636_000, 3_600, 7_200])
    assert found["wasted_energy_share"] == round(7_200 / 636_000, 4)


@pytest.mark.parametrize(
    ("util", "wasted", "share"), [({0: 3600}, 1000.0, 1.0), ({50: 3600}, 0.0, 0.0), ({0: 60, 50: 3540}, None, None)]
)
def test_of_an_older_agent_s_energy_the_idle_part_is_known_where_it_is_all_or_none(
    util: dict[int, int], wasted: float | None, share: float | None
) -> None:
    """An hour that was idle all the time wasted all its energy, a busy one none; of another one it is not known."""
    record = job()
    row = hour(record, 0, 0, util, idle_run_ms=1000 * util.get(0, 0), energy_j=1000.0)
    ledger = load(store([record], [row]))[0]
    found = Tally.of(ledger.devices).to_json()
    assert (found["energy_j"], found["energy_measured_s"]) == (1000.0, 3600.0)
    assert (found["wasted_energy_j"], found["wasted_energy_share"]) == (wasted, share)


def test_energy_of_gpus_that_were_not_measured_is_not_made_up() -> None:
    """Of two GPUs one has no energy: the sum is the other's, measured in half of the GPU-time."""
    record = job(gpus=2)
    one = hour(record, 0, 0, {90: 3600}, energy_j=500.0, energy_ms=3_600_000, idle_energy_j=0.0)
    found = Tally.of(load(store([record], [one, hour(record, 1, 0, {90: 3600})]))[0].devices).to_json()
    assert (found["gpu_s"], found["energy_j"], found["energy_measured_s"]) == (7200.0, 500.0, 3600.0)
