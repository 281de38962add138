"""Each finding fires on its case and not on its near miss."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.ledger.builders import GIB, SETTINGS, T0, job, judged, untouched, use

import gpuwaste.ledger
from gpuwaste.ledger.evidence_words import evidence_of
from gpuwaste.ledger.finding import Finding
from gpuwaste.ledger.findings import FINDINGS, limits
from gpuwaste.ledger.ledger import JobLedger
from gpuwaste.ledger.reports.report_types import FindingRow

FOUR_A100 = "sbatch --gres=gpu:a100:4 train.sh"


def all_findings(jobs: Sequence[JobLedger]) -> list[Finding]:
    """Return what every finding has to say."""
    return [finding for module in FINDINGS.values() for finding in module.find(jobs, SETTINGS)]


def found(kind: str, *jobs: JobLedger) -> list[Finding]:
    """Return the findings of one kind."""
    return [f for f in all_findings(jobs) if f.kind == kind]


def kinds(*jobs: JobLedger) -> set[str]:
    """Return the kinds found."""
    return {f.kind for f in all_findings(jobs)}


def test_every_finding_is_found_by_its_file() -> None:
    """The folder's files are the findings: eleven of them."""
    assert set(FINDINGS) == {
        "busy_hang",
        "cpu_starved",
        "few_sms",
        "gpus_opened_idle",
        "gpus_untouched",
        "idle_interactive",
        "idle_tail",
        "low_use",
        "many_small_jobs",
        "memory_resident",
        "one_gpu_of_many",
    }


def test_a_busy_job_has_no_finding() -> None:
    """A job that keeps its four GPUs at 90 % is told nothing."""
    assert kinds(judged(job(gpus=4), *(use(g) for g in range(4)))) == set()


def test_one_of_four_gpus_used_names_75_percent_and_the_line() -> None:
    """All work on one of four GPUs: three quarters wasted, and --gres=gpu:a100:1 as the job asked."""
    ledger = judged(job(gpus=4, submit_line=FOUR_A100), use(0), *(untouched(g) for g in (1, 2, 3)))
    (finding,) = all_findings([ledger])
    assert finding.kind == "one_gpu_of_many"
    assert finding.evidence["wasted_share"] == 0.75
    assert finding.wasted_gpu_s == 3 * 3600
    one, all_of_them = finding.fixes
    assert one.lines == ("#SBATCH --gres=gpu:a100:1",)
    assert (all_of_them.lines, all_of_them.text.partition(":")[0]) == ((), "use all 4 GPUs")


def test_two_of_four_gpus_used_is_not_work_on_one() -> None:
    """With two busy GPUs the other two are untouched GPUs, and the line asks for two."""
    ledger = judged(job(gpus=4, submit_line=FOUR_A100), use(0), use(1), untouched(2), untouched(3))
    (finding,) = all_findings([ledger])
    assert finding.kind == "gpus_untouched"
    assert finding.evidence["untouched_gpus"] == 2
    assert finding.fixes[0].lines == ("#SBATCH --gres=gpu:a100:2",)


def test_a_second_gpu_with_some_work_is_spread_work() -> None:
    """A second GPU with 2 % of the activity is at work: the near miss of one_gpu_of_many."""
    second = use(1, util={0: 3500, 20: 100})
    assert not found("one_gpu_of_many", judged(job(gpus=2), use(0, util={50: 3600}), replace(second, pct_ms=5_000_000)))
    assert found("one_gpu_of_many", judged(job(gpus=2), use(0, util={50: 3600}), replace(second, pct_ms=1_000_000)))


def test_an_untouched_gpu_is_named_and_a_touched_one_is_not() -> None:
    """A GPU that stayed at 0 % is untouched only where no process was ever seen on it."""
    (finding,) = found("gpus_untouched", judged(job(), untouched()))
    assert finding.fixes[0].lines == ("#SBATCH --gres=none",)
    assert not found("gpus_untouched", judged(job(), untouched(proc_seen=True)))


def test_gpus_that_were_opened_and_never_used_are_named() -> None:
    """A process at 0 % for ten minutes is a finding; one busy second, nine minutes or a large model are not."""
    opened = untouched(proc_seen=True)
    (finding,) = all_findings([judged(job(), opened)])
    assert finding.kind == "gpus_opened_idle"
    assert finding.wasted_gpu_s == 3600
    assert finding.fixes[0].text.startswith("compute on the GPU")
    assert finding.fixes[1].lines == ("#SBATCH --gres=none",)
    for near in (
        use(0, util={0: 3599, 40: 1}, proc_seen=True),
        untouched(proc_seen=True, mem_max_b=30 * GIB),
        untouched(proc_seen=True, idle_run_ms=540_000),
    ):
        assert not found("gpus_opened_idle", judged(job(), near))
    assert not found("gpus_opened_idle", judged(job(interactive=True), opened))


def test_an_opened_gpu_beside_busy_ones_is_one_to_give_back() -> None:
    """With two busy GPUs and one that was opened only, the line asks for two."""
    ledger = judged(job(gpus=3, submit_line="sbatch --gres=gpu:a100:3 x"), use(0), use(1), untouched(2, proc_seen=True))
    (finding,) = found("gpus_opened_idle", ledger)
    assert finding.fixes[0].lines == ("#SBATCH --gres=gpu:a100:2",)


def test_a_whole_node_is_never_told_to_ask_for_less() -> None:
    """Where the partition gives whole nodes, the one change is to use all GPUs."""
    for uses in ((use(0), untouched(1)), (untouched(0), untouched(1))):
        ledger = judged(job(gpus=2), *uses, whole_node=True)
        for finding in all_findings([ledger]):
            assert not any(fix.lines or "ask for" in fix.text for fix in finding.fixes)
            assert "ask for" not in finding.title


@pytest.mark.parametrize("kind", ["gpus_untouched", "one_gpu_of_many"])
def test_nothing_is_drawn_from_unknown_time(kind: str) -> None:
    """With 79 % of the allocation known neither finding fires; with 80 % it does."""
    for seconds, fires in ((2844, False), (2880, True)):
        uses = [untouched(1, seconds)] if kind == "gpus_untouched" else [use(0), untouched(1, seconds)]
        assert bool(found(kind, judged(job(gpus=len(uses)), *uses))) is fires


def test_gpus_without_an_agent_are_not_called_untouched() -> None:
    """A GPU that no agent reported is unknown: no finding names it."""
    assert kinds(judged(job(gpus=2), use(0))) == set()


def small(job_id: int, offset: int = 0, pct: int = 3, mem: int = 4 * GIB) -> JobLedger:
    """Return an hour's job at a few percent, `offset` seconds after T0."""
    record = job(job_id, start=T0 + offset, end=T0 + offset + 3600)
    return judged(record, use(job_id, util={pct: 3600}, mem_max_b=mem))


def test_three_small_jobs_at_once_would_share_one_gpu() -> None:
    """Three concurrent jobs at 3 % are one finding, with two of three GPU-hours to give back."""
    (finding,) = found("many_small_jobs", small(1), small(2), small(3))
    assert len(finding.runs) == 3
    assert finding.wasted_gpu_s == 7200
    assert finding.fixes[0].text.startswith("start 3 of them in one job with one GPU")


@pytest.mark.parametrize(
    "jobs",
    [
        [small(1), small(2)],
        [small(1), small(2, 3600), small(3, 7200)],
        [small(1), small(2), small(3, pct=6)],
        [small(1, mem=16 * GIB), small(2, mem=16 * GIB), small(3, mem=16 * GIB)],
    ],
    ids=["only two", "one after the other", "one above 5 %", "memory does not fit"],
)
def test_small_jobs_that_would_not_share_are_left_alone(jobs: list[JobLedger]) -> None:
    """Two at once, three in turn, one above the limit, or too much memory: no finding."""
    assert not found("many_small_jobs", *jobs)


def test_small_jobs_of_two_users_are_not_added() -> None:
    """Three small jobs of two users are no finding: users do not share a job."""
    other = judged(job(3, user="bob"), use(3, util={3: 3600}))
    assert not found("many_small_jobs", small(1), small(2), other)


def test_an_interactive_job_is_not_one_of_many_small_ones() -> None:
    """A shell cannot run beside others in one batch script, so two small jobs and a shell are no finding."""
    shell = judged(job(3, interactive=True), use(3, util={3: 3600}))
    assert not found("many_small_jobs", small(1), small(2), shell)


def tailed(tail: int, *, gpus: int = 1, interactive: bool = False) -> JobLedger:
    """Return an hour's run whose GPU 0 stood idle for the last `tail` seconds; other GPUs work on."""
    worked = use(0, util={90: 3600 - tail, 0: tail}, last_active_ms=(T0 + 3600 - tail) * 1000)
    return judged(job(gpus=gpus, interactive=interactive), worked, *(use(g) for g in range(1, gpus)))


def test_an_idle_tail_is_found_from_ten_minutes_on() -> None:
    """Ten idle minutes at the end of an hour are a tail, nine are not."""
    (finding,) = found("idle_tail", tailed(600))
    assert finding.wasted_gpu_s == 600
    assert "cancel" not in str(finding.fixes)
    assert not found("idle_tail", tailed(540))


def test_a_tail_needs_all_gpus_to_stop() -> None:
    """While another GPU of the job works there is no tail."""
    assert not found("idle_tail", tailed(1200, gpus=2))


def test_an_idle_pause_is_no_tail() -> None:
    """Half an hour of idling in the middle of a run is waste and no tail."""
    paused = use(0, util={90: 1800, 0: 1800}, last_active_ms=(T0 + 3600) * 1000)
    assert not found("idle_tail", judged(job(), paused))


def test_an_idle_interactive_job_is_found_beyond_its_grace() -> None:
    """Forty idle minutes of an interactive job are ten beyond the grace; thirty are within; batch is not meant."""
    idle = job(interactive=True)
    (finding,) = found("idle_interactive", judged(idle, use(util={90: 1200, 0: 2400})))
    assert finding.wasted_gpu_s == 600
    assert not found("idle_interactive", judged(idle, use(util={90: 1800, 0: 1800})))
    assert not found("idle_interactive", judged(job(), use(util={90: 1200, 0: 2400})))


def test_a_cpu_starved_gpu_is_found_at_90_percent_of_the_cpus() -> None:
    """20 % on the GPU with 8 CPUs at 92 % is starvation; at 85 %, or with the GPU at 40 %, it is not."""
    cpus = {"cpu_known_ms": 3_600_000}
    starved = judged(job(), use(util={20: 3600}, cpu_s=8 * 3600 * 0.92, **cpus))
    (finding,) = found("cpu_starved", starved)
    assert finding.fixes[0].text.startswith("request more CPUs, 16 on a node")
    assert not found("cpu_starved", judged(job(), use(util={20: 3600}, cpu_s=8 * 3600 * 0.85, **cpus)))
    assert not found("cpu_starved", judged(job(), use(util={40: 3600}, cpu_s=8 * 3600 * 0.92, **cpus)))


def test_cpu_time_of_a_node_is_not_added_over_its_gpus() -> None:
    """Each GPU's row has the whole job's CPU time on the node: two rows at 46 % are not 92 %."""
    both = [use(g, util={20: 3600}, cpu_s=8 * 3600 * 0.46, cpu_known_ms=3_600_000) for g in range(2)]
    assert not found("cpu_starved", judged(job(gpus=2), *both))


def test_a_busy_gpu_beside_idle_ones_is_not_cpu_starved() -> None:
    """One GPU at 90 % and three untouched ones have a low mean; the cause is another."""
    busy = use(0, cpu_s=8 * 3600.0, cpu_known_ms=3_600_000)
    assert kinds(judged(job(gpus=4), busy, *(untouched(g) for g in (1, 2, 3)))) == {"one_gpu_of_many"}


def test_memory_resident_is_information_from_half_of_the_memory_on() -> None:
    """An idle GPU with half its memory in use is exempt, named without a change; 49 % is plain waste."""
    idle = {0: 3000, 50: 600}
    held = judged(job(), use(util=idle, mem_max_b=20 * GIB))
    (finding,) = found("memory_resident", held)
    assert finding.fixes == ()
    assert held.devices[0].exempt == {"memory_resident": held.wasted_ms}
    assert held.wasted_ms == 3_000_000
    assert not found("memory_resident", judged(job(), use(util=idle, mem_max_b=19 * GIB)))


def test_a_busy_hang_is_found_after_half_an_hour() -> None:
    """Half an hour of full duty cycle without work is a hang; a minute less is not."""
    (finding,) = found("busy_hang", judged(job(), use(util={100: 3600}, hang_ms=1_800_000)))
    assert "hang" in finding.title
    assert not found("busy_hang", judged(job(), use(util={100: 3600}, hang_ms=1_740_000)))


def test_findings_of_a_running_job_are_provisional() -> None:
    """While the job runs the finding says so, and the fix is to end it."""
    ledger = judged(job(seconds=None), untouched(final=False), now=T0 + 3600 + 600)
    (finding,) = all_findings([ledger])
    assert finding.provisional


def test_all_findings_hold_plain_json() -> None:
    """Every finding's evidence is JSON as it stands."""
    ledger = judged(job(gpus=4), use(0), *(untouched(g) for g in (1, 2, 3)))
    assert all(f.to_json()["runs"][0]["jobid"] == 7 for f in all_findings([ledger]))


FEW_SMS: dict[str, Any] = {
    "profiled_ms": 3_600_000,
    "sm_active": 0.05,
    "power_w_at_full": 120.0,
    "power_limit_w": 400.0,
}


def test_few_multiprocessors_at_work_are_found_where_the_power_agrees() -> None:
    """100 % busy on 5 % of the SMs at 120 of 400 W: the evidence has both sources."""
    (finding,) = found("few_sms", judged(job(), use(util={100: 3600}, dram_active=0.1, **FEW_SMS)))
    assert (finding.evidence["sm_share"], finding.evidence["power_w"], finding.evidence["dram_active"]) == (
        0.05,
        120.0,
        0.1,
    )
    assert finding.wasted_gpu_s == pytest.approx(3600 * 0.95)
    assert "larger batches: at most 10 %" in finding.fixes[0].text
    assert "a shard or a MIG slice" in finding.fixes[1].text


@pytest.mark.parametrize(
    "changes",
    [
        {"sm_active": 0.25},  # a quarter of the SMs
        {"power_w_at_full": 200.0},  # NVML's power says that much is computed: profiling decides nothing alone
        {"power_w_at_full": None},
        {"power_limit_w": None},
        {"profiled_ms": 1_799_000},  # less than half of the time
        {"profiled_ms": None, "sm_active": None},
        {"hang_ms": 1_800_000},  # a hang has its own finding
    ],
    ids=str,
)
def test_few_multiprocessors_are_not_found_on_the_near_miss(changes: dict[str, Any]) -> None:
    """At a threshold, without the power that agrees, or with too little profiled, nothing is said of SMs."""
    assert not found("few_sms", judged(job(), use(util={100: 3600}, **(FEW_SMS | changes))))


def test_the_share_of_multiprocessors_is_that_of_the_busy_time() -> None:
    """Half idle and half at 100 % with a mean of 20 % is 40 % of the SMs while busy: nothing to find."""
    ledger = judged(job(), use(util={0: 1800, 100: 1800}, **(FEW_SMS | {"sm_active": 0.2})))
    assert ledger.devices[0].use.sm_share == pytest.approx(0.4)
    assert not found("few_sms", ledger)


def test_thresholds_stand_in_the_findings_alone() -> None:
    """The queries that choose which findings are asked have no number of their own: each is a parameter."""
    folder = Path(next(iter(gpuwaste.ledger.__path__))) / "queries"
    rows = (folder / "ledger_rows.sql").read_text()
    for name in limits():
        assert f"${name}::DOUBLE" in rows, name
    code = re.sub(r"--.*", "", rows)
    assert {float(number) for number in re.findall(r"(?<![\w.])\d+\.?\d*", code)} <= {0.0, 1.0, 100.0, 1000.0}
    held = re.sub(r"--.*", "", (folder / "held_gpus.sql").read_text())
    assert held.count("0.9") == 1


def _at(what: str, value: float) -> JobLedger:
    """Return a run of which one share has this value: of multiprocessors, of activity on one GPU, of CPU time."""
    if what == "sm":
        return judged(job(), use(util={100: 3600}, **{**FEW_SMS, "sm_active": value}))
    if what == "pct":
        ms = 3_600_000
        return judged(job(gpus=2), use(0, pct_ms=int(value) * ms), use(1, pct_ms=(10_000 - int(value)) * ms))
    starved = job(total_cpu_s=8 * 3600 * value)
    return judged(starved, use(util={20: 3600}))


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        ("few_sms", {"sm": (0.2499, 0.2501)}),
        ("one_gpu_of_many", {"pct": (9901, 9899)}),
        ("cpu_starved", {"cpu": (0.9001, 0.89996)}),
    ],
)
def test_a_finding_and_its_query_have_one_threshold(kind: str, case: dict[str, tuple[float, float]]) -> None:
    """Just beyond a threshold the run has the finding, just before it the run is not even asked for it."""
    ((name, (beyond, before)),) = case.items()
    assert kind in _at(name, beyond).candidate
    assert found(kind, _at(name, beyond))
    assert kind not in _at(name, before).candidate
    assert not found(kind, _at(name, before))


def test_every_figure_of_a_finding_has_words() -> None:
    """A page names each figure in words, with its unit: no key of the document and no bare ratio."""
    figures = {"wasted_share": 0.75, "busy_mean_pct": 76.67, "hang_s": 5400.0, "gpu_s": 7200.0, "power_w": 119.6}
    finding = FindingRow(kind="x", title="t", runs=[], evidence=figures, fix=[], wasted_gpu_s=0.0, provisional=False)
    assert evidence_of(finding) == [
        ("wasted", "75 %"), ("its mean use", "77 %"), ("hung for", "1 h 30 min"), ("GPU-hours held", "2.0"),
        ("power", "120 W"),
    ]  # fmt: skip
