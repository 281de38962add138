"""The sources of the views of `gpuwaste analyze`: the hub, or a store into which files are imported first."""

import argparse
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gpuwaste.cli.job_sources import recognise
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuwaste.jobs.importers.history_source import ImportSource
    from gpuwaste.show.view_document import ComparisonDocument, ViewDocument
    from gpuwaste.store.database import Database
    from gpuwaste.views.rewriter import Rewriter
    from gpuwaste.views.view_query import Window


@dataclass(frozen=True, slots=True)
class ViewPeriod:
    """Start and end in UTC seconds, None for all data, and the clusters."""

    start: int | None
    end: int | None
    clusters: tuple[str, ...]


class Answers(Protocol):
    """A source of views."""

    unread: "Sequence[str]"
    """Notes on what could not be read of the files; they are in the views too."""

    def names(self) -> list[str]:
        """Return the views that there are."""
        ...

    def view(self, name: str, period: ViewPeriod) -> "ViewDocument":
        """Return a view."""
        ...

    def compared(self, name: str, before: ViewPeriod, after: ViewPeriod) -> "ComparisonDocument":
        """Return a view of two periods."""
        ...


def of_files(options: argparse.Namespace) -> bool:
    """Return whether the views are of files or of a store."""
    recognise(options)
    return any((options.sacct, options.swf, options.csv_file, options.store))


@contextmanager
def view_answers(options: argparse.Namespace, config: Config) -> "Iterator[Answers]":
    """Open the source of views that the options name. Raises GpuwasteError."""
    if not of_files(options):
        if options.machine:
            raise UsageError("--machine: only with jobs from files; the hub records the machine itself")
        yield _HubAnswers(config)
        return
    with _store(options, config) as db:
        yield StoreAnswers(db, config, bring_machines(db, options.machine or (), options.time_zone))


class _HubAnswers:
    """Views that the hub makes."""

    unread: "Sequence[str]" = ()

    def __init__(self, config: Config) -> None:
        self._config = config

    def names(self) -> list[str]:
        """Query the names of the available views."""
        from gpuwaste.show.view_document import ViewsDocument

        return [entry.name for entry in self._ask("/v1/views", {}, ViewsDocument).views]

    def view(self, name: str, period: ViewPeriod) -> "ViewDocument":
        """Ask for a view."""
        from gpuwaste.show.view_document import ViewDocument

        found: ViewDocument = self._ask(f"/v1/views/{name}", _asked(period), ViewDocument)
        return found

    def compared(self, name: str, before: ViewPeriod, after: ViewPeriod) -> "ComparisonDocument":
        """Ask for a comparison."""
        from gpuwaste.show.view_document import ComparisonDocument

        other = {f"other_{key}": value for key, value in _asked(before).items() if key != "offset"}
        found: ComparisonDocument = self._ask(f"/v1/views/{name}/compare", _asked(after) | other, ComparisonDocument)
        return found

    def _ask(self, path: str, parameters: dict[str, str | int], kind: Any) -> Any:
        from gpuwaste.cli.hub_access import LONG_PATIENCE_S, ask_hub
        from gpuwaste.core.codec import convert

        try:
            return convert(ask_hub(self._config, path, parameters, LONG_PATIENCE_S), kind, "the hub's answer")
        except ParseError as error:
            raise ParseError(f"{error}: does the hub run another version?") from error


def _asked(period: ViewPeriod) -> dict[str, str | int]:
    asked = {"start": period.start, "end": period.end, "clusters": ",".join(period.clusters) or None}
    return {"offset": _offset(period.end)} | {key: value for key, value in asked.items() if value is not None}


class StoreAnswers:
    """Views of a store that nothing else writes to."""

    def __init__(self, db: "Database", config: Config, unread: "Sequence[str]") -> None:
        from gpuwaste.views.unread_rows import unread_rows

        self._db = db
        self.unread: Sequence[str] = [*unread_rows(db), *unread]
        self._config = config
        self._rewriter = _rewriter(config)

    def names(self) -> list[str]:
        """Return the views of this version."""
        from gpuwaste.views.view import all_views

        return list(all_views())

    def view(self, name: str, period: ViewPeriod) -> "ViewDocument":
        """Make a view."""
        document: ViewDocument = self._viewed(name, period).document
        return document if self._rewriter is None else self._rewriter.asked(document)

    def compared(self, name: str, before: ViewPeriod, after: ViewPeriod) -> "ComparisonDocument":
        """Make a comparison."""
        from gpuwaste.views.compare import compare

        return compare(self._viewed(name, before), self._viewed(name, after))

    def _viewed(self, name: str, period: ViewPeriod) -> Any:
        from dataclasses import replace

        from msgspec import structs

        from gpuwaste.ledger.energy.site_tariff import read_tariff
        from gpuwaste.ledger.ledger import LedgerSettings
        from gpuwaste.views.view import look, view_named
        from gpuwaste.views.view_query import ViewQuery

        settings = LedgerSettings.from_config(self._config.hub, self._config.agent.ship_every_s)
        tariff = read_tariff(self._config.energy)
        viewed = look(view_named(name), ViewQuery(self._db, self.window(period), settings, tariff=tariff))
        notes = [*viewed.document.notes, *self.unread]
        return replace(viewed, document=structs.replace(viewed.document, notes=notes))

    def window(self, period: ViewPeriod) -> "Window":
        """Return the window of a period. Raises NoDataError, UsageError."""
        from gpuwaste.views.view_query import stored_window

        return stored_window(self._db, period.start, period.end, period.clusters, _offset(period.end))


def _rewriter(config: Config) -> "Rewriter | None":
    """Return the rewriter of sentences, None where no model is configured. Raises ConfigError."""
    if not config.analytics.model_url:
        return None
    from gpuwaste.core.clock import SystemClock
    from gpuwaste.views.language_model import LanguageModel
    from gpuwaste.views.rewriter import Rewriter

    return Rewriter(LanguageModel(config.analytics), SystemClock())


def _offset(at: int | None) -> int:
    """Return how far this host's zone is ahead of UTC at the end of a period."""
    when = datetime.now().astimezone() if at is None else datetime.fromtimestamp(at).astimezone()
    shift = when.utcoffset()
    return 0 if shift is None else int(shift.total_seconds())


@contextmanager
def _store(options: argparse.Namespace, config: Config) -> "Iterator[Database]":
    """Open the store of --store, or one that the files were imported into: --into keeps it, else it is temporary."""
    import tempfile
    from contextlib import closing

    from gpuwaste.store.database import Database

    with tempfile.TemporaryDirectory(prefix="gpuwaste-analyze-") as folder:
        path = options.store or options.into or Path(folder) / "history.duckdb"
        if options.store is None:
            for source in _sources(options, config):
                _bring(path, source)
        elif not path.exists():
            raise UsageError(f"{path}: no such file: --store names a store that gpuwaste history import wrote")
        with closing(Database.open(path, "hub", {"threads": "2"})) as db:
            yield db


def _sources(options: argparse.Namespace, config: Config) -> "Iterator[ImportSource]":
    from gpuwaste.cli.job_sources import file_source
    from gpuwaste.jobs.importers.sources.swf import SwfFile

    for file in options.swf or ():
        yield SwfFile(file)
    for name in ("sacct", "csv_file"):
        for file in getattr(options, name) or ():
            one = argparse.Namespace(**{**vars(options), "sacct": None, "csv_file": None, name: file})
            one.clusters = "" if "," in options.clusters else options.clusters
            yield file_source(one, config, options.format)


def _bring(path: Path, source: "ImportSource") -> None:
    from contextlib import closing

    from gpuwaste.cli.history_import import import_progress
    from gpuwaste.core.clock import SystemClock
    from gpuwaste.jobs.importers.bulk_import import import_source
    from gpuwaste.jobs.importers.history_store import HistoryStore

    with closing(HistoryStore.open(path, SystemClock())) as store, import_progress(source.key, source.size) as progress:
        import_source(store, path, source, progress=progress)


def bring_machines(db: "Database", files: "Sequence[Path]", time_zone: str) -> "Sequence[str]":
    """Store the machine of files, else what the jobs show of it; return notes on rows that could not be read."""
    from gpuwaste.cli.job_sources import local_zone
    from gpuwaste.jobs.machine.inferred_machine import infer_nodes
    from gpuwaste.jobs.machine.machine_files import bring_machine
    from gpuwaste.slurm.formats.slurm_times import zone_of

    zone = zone_of(time_zone or local_zone())
    with db.writing():
        notes = [note for path in files for note in bring_machine(db, path, zone)]
        for row in db.rows("job_clusters"):
            infer_nodes(db, row["cluster"])
    return notes
