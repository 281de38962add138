"""The importer of accounting: when to read it, what to do while it is down, and runs that are missing in it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.log_event import BUG
from gpuwaste.core.parts import Part, Parts, Reloads
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Bus, Worker, backoff_s
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.jobs.host_ports import HostPorts
from gpuwaste.jobs.importers.accounting import AccountingImport, ImportSettings
from gpuwaste.jobs.importers.accounting_windows import windows
from gpuwaste.jobs.run_store import open_run_keys, set_partitions
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.slurm.site.site_defaults import SiteDefaults
from gpuwaste.store.hub.hub_store import Aside, HubStore

PARTITIONS_EVERY_S: Final = 300.0
WIDE_EVERY_S: Final = 600.0
BACKOFF_MAX_S: Final = 300.0
_BACKOFF_FIRST_S: Final = 5.0
_FAILED: Final = log_event.warning(
    "accounting-unavailable: cannot read accounting, stored jobs are used: {error}",
    "slurmdbd or its database does not answer; the hub retries and catches up.",
)
_AGAIN: Final = log_event.info("accounting-available: accounting is read again after {failures} failed attempts")
_QUARANTINED: Final = log_event.warning(
    "accounting-quarantined: {rows} rows of sacct quarantined; line {line}: {reason}",
    "Accounting has rows that cannot be read: see `gpuwaste history status` and table `quarantine` of the hub's store.",
)
_MISSING: Final = log_event.warning(
    "runs-missing: {runs} runs still open here but missing from sacct",
    "See `sacctmgr show runawayjobs`; or slurmdbd has purged them.",
)


@dataclass(frozen=True, slots=True)
class RunsStored:
    """Runs of accounting are in the store, new or as they were."""

    records: Sequence[JobRecord]


@dataclass(frozen=True, slots=True)
class Imported:
    """Accounting was read up to a UTC second; None where there is nothing to read."""

    read_until: int | None


@dataclass(frozen=True, slots=True)
class ImportStatus:
    """The state of the import; `read_until` is UTC seconds, None before anything was read."""

    read_until: int | None = None
    failures: int = 0  # in a row
    error: str = ""
    bad_rows: int = 0  # since the start


class QuarantinedRows(Part):
    """Counts quarantined rows, for any thread."""

    def __init__(self) -> None:
        self._rows = Counter(
            "gpuwaste_hub_quarantined_rows", "Rows of a source that could not be stored.", ["source"], registry=None
        )
        self._rows.labels("sacct")

    @classmethod
    def part_of(cls, _parts: Parts) -> Self:
        """Return the part of a hub."""
        return cls()

    def add(self, source: str, rows: int) -> None:
        """Count rows that were quarantined."""
        self._rows.labels(source).inc(rows)

    def counted(self) -> Iterable[Metric]:
        """Return the counts."""
        return self._rows.collect()


class Importer(Part):
    """Imports runs from accounting, run by `worker`; retries while it is down."""

    def __init__(
        self,
        store: HubStore,
        slurm: SlurmClient,
        site: ClusterFacts,
        *,
        quarantined: QuarantinedRows,
        clock: Clock,
        settings: ImportSettings,
        bus: Bus,
    ) -> None:
        """Take the objects to import with; RunsStored and Imported are published on `bus`."""
        self._store = store
        self._slurm = slurm
        self._site = site
        self._quarantined = quarantined
        self._clock = clock
        self.settings = settings
        self._bus = bus
        self._accounting = AccountingImport(
            store, slurm, lambda records: bus.publish(RunsStored(records)), self._set_aside
        )
        self._trouble = RepeatSuppressor()
        self._bad_rows = 0
        self._partitions_at_us: int | None = None
        self._wide_at_us: int | None = None
        self._missing: frozenset[RunKey] = frozenset()
        self.defaults: SiteDefaults | None = None  # defaults of the partitions, None until Slurm has been queried
        self.worker = Worker("importer", self.step, clock)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of a hub."""
        ports = parts.get(HostPorts)
        return cls(
            parts.get(HubStore),
            ports.slurm,
            parts.get(ClusterFacts),
            quarantined=parts.get(QuarantinedRows),
            clock=ports.clock,
            settings=_settings(parts.get(Config)),
            bus=parts.get(Bus),
        )

    @property
    def reloads(self) -> Reloads:
        """How often accounting is read, and how far back."""
        keys = ("hub.sacct_every_s", "hub.sacct_overlap_s", "hub.sacct_first_days")
        return {keys: lambda c: setattr(self, "settings", _settings(c))}

    @property
    def status(self) -> ImportStatus:
        """The state of the import; any thread may read it."""
        return ImportStatus(self._accounting.read_until, self._trouble.times, self._trouble.words, self._bad_rows)

    def step(self) -> float:
        """Import once; returns the seconds to wait. Raises nothing that Slurm or the store can cause."""
        try:
            self._import()
            self._partitions()
            self._site.refresh()
            self._bus.publish(Imported(self._accounting.read_until))
        except GpuwasteError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 a defect must not end the import for good; the log has its place
            BUG.log(error, what="import from accounting")
            return self._failed(f"bug in gpuwaste: {type(error).__name__}: {error}")
        if failures := self._trouble.over():
            _AGAIN.log(failures=failures)
        return self.settings.every_s

    def metrics(self) -> Iterable[Metric]:
        """Yield how current accounting is."""
        return accounting_families(self.lag_s(), ok=not self.status.failures)

    def lag_s(self) -> float | None:
        """Return the age of the newest accounting that was read."""
        until = self._accounting.read_until
        return None if until is None else max(0.0, self._clock.utc_us() / 1e6 - until)

    def _import(self) -> None:
        cluster = self._site.cluster()
        now = self._clock.utc_s()
        first, told = self._accounting.read_new(cluster, now, self.settings)
        self._refresh_missing(cluster, told, first)

    def _set_aside(self, bad: Sequence[Aside], new: int) -> None:
        if new:
            self._quarantined.add("sacct", new)
            self._bad_rows += new
            _QUARANTINED.log(rows=new, line=bad[0].line, reason=bad[0].reason)

    def _refresh_missing(self, cluster: str, seen: set[RunKey], first: int) -> None:
        """Read further back for open runs that accounting did not return: they may have ended earlier.

        Once for each set of such runs, and not too often.
        """
        open_runs = open_run_keys(self._store, cluster)
        missing = frozenset(key for key in open_runs if key not in seen)
        due = self._wide_at_us is None or self._clock.mono_us() - self._wide_at_us >= WIDE_EVERY_S * 1e6
        if not missing or missing == self._missing or not due:
            return
        self._wide_at_us = self._clock.mono_us()
        earliest = min(open_runs[key] for key in missing)
        for start, end in windows(earliest, first):
            self._accounting.read(start, end)
        still = open_run_keys(self._store, cluster).keys()
        self._missing = frozenset(missing & still)
        if self._missing:
            _MISSING.log(runs=len(self._missing))

    def _partitions(self) -> None:
        now_us = self._clock.mono_us()
        if self._partitions_at_us is not None and now_us - self._partitions_at_us < PARTITIONS_EVERY_S * 1e6:
            return
        partitions = self._slurm.partitions()
        self.defaults = SiteDefaults.of(partitions, self._slurm.config())
        set_partitions(self._store, self._site.cluster(), {p.name: p.name in self.defaults.whole for p in partitions})
        self._partitions_at_us = now_us

    def _failed(self, words: str) -> float:
        if self._trouble.news(words):
            _FAILED.log(error=words)
        failures = self._trouble.times
        return min(backoff_s(failures, _BACKOFF_FIRST_S, BACKOFF_MAX_S), self.settings.every_s * failures)


def accounting_families(lag_s: float | None, *, ok: bool) -> Iterator[Metric]:
    """Yield the age of the newest imported accounting, if any, and whether the last import succeeded."""
    lag = GaugeMetricFamily("gpuwaste_hub_accounting_lag_seconds", "Age of the newest accounting that was read.")
    if lag_s is not None:
        lag.add_metric([], lag_s)
    yield lag
    yield GaugeMetricFamily("gpuwaste_hub_accounting_success", "Whether the last import from accounting succeeded.", ok)


def _settings(config: Config) -> ImportSettings:
    hub = config.hub
    return ImportSettings(hub.sacct_every_s, hub.sacct_overlap_s, hub.sacct_first_days)
