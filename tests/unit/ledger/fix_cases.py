"""Runs with each finding that proposes something, in the forms in which jobs ask for GPUs and CPUs."""

from collections.abc import Iterator
from typing import Any, Final

from tests.unit.ledger.builders import LATER, T0, job, judge_many, judged, untouched, use

from gpuwaste.ledger.finding import Finding
from gpuwaste.ledger.findings import FINDINGS
from gpuwaste.ledger.ledger import JobLedger, LedgerSettings
from gpuwaste.ledger.run_judging import job_ledgers

SUBMITTED: Final = (
    "sbatch job.sh",
    "sbatch --gres=gpu:a100:4 job.sh",
    "sbatch --gpus=a100:4 job.sh",
    "sbatch -G4 job.sh",
    "sbatch --gpus-per-node=4 job.sh",
    "sbatch -n4 --gpus-per-task=1 job.sh",
    "sbatch -n 1 --gpus-per-task=a100:4 job.sh",
    "sbatch --gpus-per-socket=2 --sockets-per-node=2 job.sh",
    "sbatch --gres=gpu:4 -c8 job.sh",
)
_EVERY_FORM: Final = frozenset({"one_gpu_of_many", "gpus_untouched", "gpus_untouched, all", "cpu_starved"})
_FEW_SMS: Final[dict[str, Any]] = {
    "profiled_ms": 3_600_000,
    "sm_active": 0.05,
    "power_w_at_full": 120.0,
    "power_limit_w": 400.0,
}
_WORKED: Final[dict[str, Any]] = {"util": {90: 2400, 0: 1200}, "last_active_ms": (T0 + 2400) * 1000}
USES: Final[dict[str, tuple[Any, ...]]] = {
    "one_gpu_of_many": (use(0), untouched(1), untouched(2), untouched(3)),
    "gpus_untouched": (use(0), use(1), untouched(2), untouched(3)),
    "gpus_untouched, all": tuple(untouched(g) for g in range(4)),
    "gpus_untouched, one opened": (use(0), use(1), untouched(2, proc_seen=True), untouched(3)),
    "gpus_untouched, others opened": (untouched(0, proc_seen=True), untouched(1), untouched(2), untouched(3)),
    "gpus_untouched, of two nodes": (use(0), use(1), untouched(2, node="gpu2"), untouched(3, node="gpu2")),
    "gpus_opened_idle": (use(0), use(1), use(2), untouched(3, proc_seen=True)),
    "gpus_opened_idle, all": tuple(untouched(g, proc_seen=True) for g in range(4)),
    "idle_tail": tuple(use(g, **_WORKED) for g in range(4)),
    "cpu_starved": tuple(use(g, util={20: 3600}, cpu_s=8 * 3600 * 0.95, cpu_known_ms=3_600_000) for g in range(4)),
    "low_use": tuple(use(g, util={}, told_pct=2.0, proc_seen=True, map_source="jobstats") for g in range(4)),
    "busy_hang": tuple(use(g, util={100: 3600}, hang_ms=3_600_000) for g in range(4)),
    "few_sms": tuple(use(g, util={100: 3600}, **_FEW_SMS) for g in range(4)),
    "idle_interactive": tuple(untouched(g, proc_seen=True) for g in range(4)),
}


def runs() -> Iterator[tuple[str, JobLedger]]:
    """Yield runs of each of USES: by several forms of a request, running, and on nodes that come whole."""
    ended = [(name, form) for name in USES for form in (SUBMITTED if name in _EVERY_FORM else SUBMITTED[:2])]
    yield from _judged(ended, 3600, whole_node=False)
    others = [(name, SUBMITTED[0]) for name in USES]
    yield from _judged(others, None, whole_node=False)
    yield from _judged(others, 3600, whole_node=True)


def _judged(cases: list[tuple[str, str]], seconds: int | None, *, whole_node: bool) -> Iterator[tuple[str, JobLedger]]:
    """Yield the runs of cases and forms of a request, judged together: one after another takes a minute."""
    records = []
    for number, (name, submitted) in enumerate(cases, 1):
        nodes = len({one.node for one in USES[name]})
        facts: dict[str, Any] = {"gpus": 4, "n_nodes": nodes, "submit_line": submitted, "seconds": seconds}
        records.append((job(number, interactive=name == "idle_interactive", **facts), USES[name]))
    db = judge_many(records, now=LATER if seconds else T0 + 3600, whole_node=whole_node)
    for _, ledger in job_ledgers(db):
        yield cases[ledger.job.job_id - 1][0], ledger


def findings(*ledgers: JobLedger) -> list[Finding]:
    """Return what every finding has to say of runs."""
    return [finding for module in FINDINGS.values() for finding in module.find(ledgers, LedgerSettings())]


def small_jobs() -> list[JobLedger]:
    """Return three jobs that would share one GPU."""
    return [judged(job(number), use(number, util={3: 3600})) for number in (1, 2, 3)]
