"""WasteDay: the ledger of the last day, by partition, for /metrics; counted at intervals, not at each scrape.

The same ledger as `gpuwaste report --allusers`, from a full UTC hour on. Accounts are separated only where the site
enables that: the name of a small account reveals whose jobs these are, and /metrics has no authentication.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.units import DAY_S, HOUR_S
from gpuwaste.core.worker import Bus
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting_importer import Imported
from gpuwaste.ledger.judged_runs import judged_runs
from gpuwaste.ledger.judging import Judging
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.run_judging import Selection
from gpuwaste.ledger.tally import Tally
from gpuwaste.store.hub.hub_store import HubStore

EVERY_S: Final = 900.0
STALE_S: Final = 7200.0  # older figures are not exported: accounting is not read
_SECONDS: Final = (
    "gpuwaste_hub_day_gpu_seconds",
    "GPU-seconds of jobs in the last 24 hours: idle, low, moderate, high, suspended, pending (on its way), unknown.",
)
_WASTED: Final = (
    "gpuwaste_hub_day_wasted_gpu_seconds",
    "GPU-seconds that jobs wasted in the last 24 hours, as gpuwaste report counts them.",
)
_EXEMPT: Final = (
    "gpuwaste_hub_day_exempt_gpu_seconds",
    "The part of the wasted GPU-seconds that is exempt: interactive grace, memory-resident.",
)
_ENERGY: Final = (
    "gpuwaste_hub_day_gpu_energy_joules",
    "Measured energy of the GPUs of jobs in the last 24 hours; no series without a measurement.",
)
_WASTED_ENERGY: Final = (
    "gpuwaste_hub_day_wasted_gpu_energy_joules",
    "The part of it that is known to have been drawn in wasted GPU-time.",
)
_CPU_ENERGY: Final = (
    "gpuwaste_hub_day_cpu_energy_joules",
    "Measured energy of the CPUs of jobs with GPUs in the last 24 hours; no series without a measurement.",
)
_NOT_COUNTED: Final = log_event.warning(
    "waste-not-counted: cannot compute the waste of the last day: {error}",
    "The store or its disk has an error. The metrics keep their last value for two hours, then they disappear.",
)
OTHER: Final = "other"
MAX_GROUPS: Final = 2000  # by partition and account; accounts beyond that are summed as "other"
_MAX_ACCOUNT: Final = 128  # characters: where Slurm enforces no associations, the user can write any account
Group = tuple[str, str]
"""Partition and account; the account is empty where accounts are not separated."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts, and when they were made on the monotonic clock."""

    tallies: Mapping[Group, Tally]
    at_us: int


class WasteDay(Part):
    """The figures of the last day. One thread calls `step`; any may call `metrics`."""

    def __init__(self, store: HubStore, settings: LedgerSettings, clock: Clock, *, by_account: bool = False) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._by_account = by_account
        self._next_us = 0
        self._empty_as_of: int | None = None
        """The last change of a run at the count, where it found nothing."""
        self._counted: Counted | None = None

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        by_account = parts.get(Config).hub.metrics_accounts
        part = cls(parts.get(HubStore), parts.get(Judging).standing, parts.get(HostPorts).clock, by_account=by_account)
        parts.get(Bus).subscribe(Imported, lambda _: part.step())
        parts.get(Bus).subscribe(LedgerSettings, part.judge_by)
        return part

    def judge_by(self, settings: LedgerSettings) -> None:
        """Use other thresholds from the next count on. Thread-safe."""
        self._settings = settings
        self._next_us = 0

    def step(self) -> None:
        """Count if it is due, or where a day without runs has one now. Raises no error of the store."""
        now = self._clock.utc_s()
        changed = self._store.touched.last(now - DAY_S, now + 1)
        if self._clock.mono_us() < self._next_us and self._empty_as_of in {None, changed}:
            return
        try:
            self._counted = Counted(self._count(), self._clock.mono_us())
            self._empty_as_of = None if self._counted.tallies else changed
        except StoreError as error:
            _NOT_COUNTED.log(error=error)
        self._next_us = self._clock.mono_us() + int(EVERY_S * 1e6)

    def metrics(self) -> Iterator[Metric]:
        """Yield the metric families; without series where nothing was counted, or not recently."""
        counted = self._counted
        fresh = counted is not None and self._clock.mono_us() - counted.at_us <= STALE_S * 1e6
        yield from families(counted.tallies if counted is not None and fresh else {})

    def _count(self) -> dict[Group, Tally]:
        now = self._clock.utc_s()
        first = (now - DAY_S) // HOUR_S * HOUR_S
        with self._store.reader() as db, judged_runs(db, Selection(first, now + 1), self._settings, now) as runs:
            sums = runs.sums()
        tallies: dict[Group, Tally] = {}
        for (_, account, partition, _), found in sums.items():
            group = (partition, account[:_MAX_ACCOUNT] if self._by_account else "")
            if group not in tallies and len(tallies) >= MAX_GROUPS:
                group = (partition, OTHER)
            tallies.setdefault(group, Tally()).add_tally(found.own)
        return tallies


def families(tallies: Mapping[Group, Tally]) -> Iterator[Metric]:
    """Yield the tallies as metrics."""
    seconds = GaugeMetricFamily(*_SECONDS, labels=["partition", "account", "use"])
    wasted = GaugeMetricFamily(*_WASTED, labels=["partition", "account"])
    exempt = GaugeMetricFamily(*_EXEMPT, labels=["partition", "account"])
    energy = GaugeMetricFamily(*_ENERGY, labels=["partition", "account"])
    wasted_energy = GaugeMetricFamily(*_WASTED_ENERGY, labels=["partition", "account"])
    cpu_energy = GaugeMetricFamily(*_CPU_ENERGY, labels=["partition", "account"])
    for group, tally in sorted(tallies.items()):
        for use, ms in _uses(tally).items():
            seconds.add_metric([*group, use], ms / 1000)
        wasted.add_metric(group, tally.wasted_ms / 1000)
        exempt.add_metric(group, sum(tally.exempt.values()) / 1000)
        measured = ((energy, tally.energy_j), (wasted_energy, tally.wasted_j), (cpu_energy, tally.cpu_energy_j))
        for family, joules in measured:
            if joules is not None:
                family.add_metric(group, joules)
    yield from (seconds, wasted, exempt, energy, wasted_energy, cpu_energy)


def _uses(tally: Tally) -> dict[str, int]:
    return {
        "idle": tally.idle_ms,
        "low": tally.low_ms,
        "moderate": tally.moderate_ms,
        "high": tally.high_ms,
        "suspended": tally.suspended_ms,
        "pending": tally.pending_ms,
        "unknown": sum(tally.unknown.values()),
    }
