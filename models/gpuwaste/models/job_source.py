"""The source of jobs for training: a store's file, the hub that holds it, or a log in the standard workload format.

Each gives a JobTable and one line that describes it; without jobs to learn from it raises one NoDataError.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from gpuwaste.core.codec import convert
from gpuwaste.core.errors import NoDataError, ParseError, StoreError, UsageError, WireError
from gpuwaste.core.owner import as_owner
from gpuwaste.core.underuse import UNDER_USE, UnderUse
from gpuwaste.jobs.history.from_store import read_table
from gpuwaste.jobs.history.job_table import GpuUse, JobTable, table_of
from gpuwaste.jobs.job_event import HistoryEvent, RunUse, event_from_json
from gpuwaste.jobs.run_store import clusters
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.database import Database

if TYPE_CHECKING:
    from gpuwaste.jobs.history.swf_table import SwfLog

_TOLD: Final = 3  # bad rows of a log that are reported
PAGE: Final = 10_000  # events requested from the hub at a time
_READ_ONLY: Final = {"access_mode": "READ_ONLY", "threads": "2"}
_TEXTS: Final = ("cluster", "name", "user", "account", "partition", "qos", "req_tres", "state")
Progress = Callable[[int], None]


class SourceHub(Protocol):
    """The part of HubClient that is used."""

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> dict[str, Any]:
        """Return the JSON object at `path`."""
        ...


@dataclass(frozen=True, slots=True)
class JobSource:
    """The jobs of one cluster, and their origin ("hub.duckdb, cluster gw").

    `processors`: number of processors of the machine, if the log's header has it.
    """

    table: JobTable
    cluster: str
    text: str
    processors: int | None = None
    unread: tuple[str, ...] = ()
    """Texts about what could not be read, with line numbers."""


def load_source(
    store: Path | None = None,
    hub: SourceHub | None = None,
    cluster: str = "",
    progress: Progress = lambda _: None,
    under_use: UnderUse = UNDER_USE,
    *,
    energy: bool = False,
) -> JobSource:
    """Return the history from the file, or from the hub where there is no file or another process holds it.

    `energy`: include measured energy, which the hub's history lacks. The use of GPUs is counted by `under_use`; the
    hub's data is by the hub's own rule.

    Raises NoDataError where there are no jobs, UsageError where one of several clusters has to be named, and what the
    file or the hub raise.
    """
    held: StoreError | None = None
    if store is not None and store.exists():
        try:
            return load_store(store, cluster, under_use, energy=energy)
        except StoreError as error:
            held = error
    if hub is not None:
        try:
            return load_hub(hub, cluster, progress)
        except WireError as error:
            if held is not None:
                raise StoreError(f"{held}; and not through the hub: {error}") from error
            raise
    raise held or NoDataError(
        f"{store or 'history'}: no store of jobs there: start the hub, or import a history (gpuwaste history import)"
    )


def load_store(path: Path, cluster: str = "", under_use: UnderUse = UNDER_USE, *, energy: bool = False) -> JobSource:
    """Return the runs of one cluster of a store, opened read-only.

    Raises NoDataError, UsageError, StoreError.
    """
    with as_owner(path), closing(Database.open(path, "hub", _READ_ONLY)) as db:
        chosen = _chosen(clusters(db), cluster, str(path))
        table = read_table(db, chosen, under_use, energy=energy).table
        return JobSource(table, chosen, f"{path.name}, cluster {chosen}")


def load_hub(hub: SourceHub, cluster: str = "", progress: Progress = lambda _: None) -> JobSource:
    """Return the runs of a hub's history; the caller needs to be an operator.

    `progress` is called with the number of events of each page. Raises NoDataError, UsageError, WireError, AuthError.
    """
    runs: dict[str, _Runs] = {}
    after, under_use = 0, UNDER_USE
    while True:
        page = hub.get("/v1/history", {"after": after, "limit": PAGE})
        for event in _events(page):
            if not cluster or event.run_key.cluster == cluster:
                runs.setdefault(event.run_key.cluster, _Runs()).take(event)
        under_use = convert(page.get("under_use", {}), UnderUse, "/v1/history: under_use")
        following = page["next"]
        if following <= after:
            break
        progress(following - after)
        after = following
    chosen = _chosen(sorted(name for name, found in runs.items() if found.jobs), cluster, "the hub")
    return JobSource(runs[chosen].table(under_use), chosen, f"the hub's history, cluster {chosen}")


def load_swf(path: Path, cluster: str = "") -> JobSource:
    """Return the jobs of a log in the standard workload format. Raises NoDataError, UsageError, ParseError."""
    from gpuwaste.jobs.history.swf_table import swf_table  # noqa: PLC0415 only logs need this reader

    name = cluster or path.name.partition(".")[0]
    log = swf_table(path, name)
    return JobSource(log.table, name, path.name, log.facts.processors, _unread(log))


def _unread(log: "SwfLog") -> tuple[str, ...]:
    """Return which rows of a log could not be read, and how many were out of order; lines are counted from 1."""
    found = []
    if log.facts.bad:
        first = "; ".join(f"line {row.line}: {row.reason}" if row.line else row.reason for row in log.bad[:_TOLD])
        more = ", ..." if log.facts.bad > _TOLD else ""
        found.append(f"{log.facts.bad} rows of the log could not be read ({first}{more})")
    if log.facts.unsorted:
        found.append(f"{log.facts.unsorted} rows of the log are submitted before the row above; the jobs were sorted")
    return tuple(found)


class _Runs:
    """The runs of one cluster, each from its newest event; a run is (job id, submission)."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[int, int], JobRecord] = {}
        self._uses: dict[tuple[int, int], RunUse] = {}
        self._learnt: dict[tuple[int, int], int] = {}

    def take(self, event: HistoryEvent) -> None:
        job = event.job
        if job is None:
            return
        run = (job.job_id, job.submit)
        self.jobs[run] = _lean(job)
        if event.kind == "ledger":
            self._learnt[run] = max(event.at_utc, self._learnt.get(run, 0))
        if event.use is not None:
            self._uses[run] = event.use

    def table(self, under_use: UnderUse) -> JobTable:
        uses = [self._use(run, job) for run, job in self.jobs.items()]
        return table_of(list(self.jobs.values()), use=uses, under_use=under_use)

    def _use(self, run: tuple[int, int], job: JobRecord) -> GpuUse | None:
        use = self._uses.get(run)
        if use is None or job.end is None:
            return None
        known_at = max(self._learnt.get(run, 0), job.end)
        return GpuUse(use.used_ratio, use.gpus_active, use.coverage, known_at, use.gpus_used)


def _events(page: Mapping[str, Any]) -> list[HistoryEvent]:
    if not isinstance(page.get("events"), list) or type(page.get("next")) is not int:
        raise WireError("/v1/history: the answer is not a page of events: is this the hub? See hub_url")
    try:
        return [event_from_json(item) for item in page["events"]]
    except ParseError as error:
        raise WireError(str(error)) from error


def _lean(job: JobRecord) -> JobRecord:
    """Leave out what a table does not need; a million runs share equal texts."""
    texts: dict[str, Any] = {name: sys.intern(getattr(job, name)) for name in _TEXTS}
    return replace(
        job, printed_id="", submit_line="", nodes="", alloc_tres="", group="", gpu_type="", verdict_id="", **texts
    )


def _chosen(names: list[str], wanted: str, where: str) -> str:
    if wanted and wanted not in names:
        raise NoDataError(f"{where}: no jobs of cluster {wanted!r}; clusters: {', '.join(names) or 'none'}")
    if not names:
        raise NoDataError(f"{where}: no jobs yet: wait for the hub's import, or run gpuwaste history import")
    if len(names) > 1 and not wanted:
        raise UsageError(f"{where}: contains several clusters, give one with --clusters: {', '.join(names)}")
    return wanted or names[0]
