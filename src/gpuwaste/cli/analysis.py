"""What `gpuwaste analyze` does: views of the hub, or of files that are imported first; printed or written."""

import argparse
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from gpuwaste.cli.time_options import parse_time
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ParseError, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuwaste.analytics.asking import Window
    from gpuwaste.analytics.document import ComparisonDocument, ViewDocument
    from gpuwaste.analytics.rewriter import Rewriter
    from gpuwaste.ingest.source import Source
    from gpuwaste.store.database import Database

    Found = ViewDocument | ComparisonDocument

PREVIOUS: Final = "previous"
CLUSTERS: Final = "clusters"
_DAYS: Final = "now-30days"
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Period:
    """Start and end in UTC seconds, None for all that there is, and the clusters."""

    start: int | None
    end: int | None
    clusters: tuple[str, ...]


class Answers(Protocol):
    """Where views come from."""

    def names(self) -> list[str]:
        """Return the views that there are."""
        ...

    def view(self, name: str, period: Period) -> "ViewDocument":
        """Return a view."""
        ...

    def compared(self, name: str, before: Period, after: Period) -> "ComparisonDocument":
        """Return a view of two periods."""
        ...


def found(options: argparse.Namespace, config: Config) -> "Iterator[tuple[str, Found]]":
    """Yield the views that the options ask for, as they are ready. Raises GpuwasteError."""
    with _answers(options, config) as answers:
        known = answers.names()
        wanted = options.view or known
        for name in wanted:
            if name not in known:
                raise UsageError(f"--view {name[:40]}: expected one of {', '.join(known)}")
        before, after = periods(options, offline=_offline(options))
        for name in dict.fromkeys(wanted):
            yield name, answers.view(name, after) if before is None else answers.compared(name, before, after)


def periods(options: argparse.Namespace, *, offline: bool) -> tuple[Period | None, Period]:
    """Return what is compared, None for nothing, and what is viewed. Raises UsageError."""
    clusters = tuple(filter(None, options.clusters.split(",")))
    start = options.starttime or (None if offline else _DAYS)
    first = None if start is None else parse_time(start)
    last = None if offline and options.endtime == "now" else parse_time(options.endtime)
    if first is not None and last is not None and first >= last:
        raise UsageError(f"-S {start} is not before -E {options.endtime}")
    after = Period(first, last, clusters)
    if options.compare is None:
        return None, after
    if options.compare == CLUSTERS:
        if len(clusters) != _PAIR:
            raise UsageError("--compare clusters: name two clusters with -M A,B")
        return Period(first, last, clusters[:1]), Period(first, last, clusters[1:])
    if options.compare == PREVIOUS:
        if first is None or last is None:
            raise UsageError("--compare previous: give -S and -E")
        return Period(first - (last - first), first, clusters), after
    words = options.compare.split(",")
    if len(words) != _PAIR:
        raise UsageError(f"--compare {options.compare[:40]}: expected previous, clusters or START,END")
    other = parse_time(words[0]), parse_time(words[1])
    if other[0] >= other[1]:
        raise UsageError(f"--compare: {words[0]} is not before {words[1]}")
    return Period(*other, clusters), after


def write(folder: Path, name: str, document: "Found") -> list[Path]:
    """Write a view's table, facts and document to a folder; returns the files. Raises StoreError."""
    from msgspec import json

    from gpuwaste.analytics.document import ComparisonDocument
    from gpuwaste.core.files import write_whole
    from gpuwaste.report.view_text import view_csv

    compared = isinstance(document, ComparisonDocument)
    view = document.after if isinstance(document, ComparisonDocument) else document
    parts = {
        f"{name}.csv": view_csv(view).encode(),
        f"{name}.facts.json": json.format(json.encode(view.facts), indent=1),
    }
    parts[f"{name}.json"] = json.format(json.encode(view), indent=1)
    if compared:
        parts[f"{name}.compare.json"] = json.format(json.encode(document), indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, data in parts.items():
            write_whole(folder / file, data)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be written: {error.strerror or error}") from error
    return [folder / file for file in parts]


def write_pages(folder: Path, documents: "Sequence[tuple[str, Found]]") -> Path:
    """Write the views as a folder of pages; returns its first page. Raises UsageError."""
    from msgspec import json

    from gpuwaste.analytics.document import ComparisonDocument
    from gpuwaste.report.view_text import view_csv

    try:
        from gpuwaste.web.offline import write_folder
    except ImportError as error:
        raise UsageError(f"--html: Python's {error.name} is not here: install gpuwaste-hub") from error
    views = [one.after if isinstance(one, ComparisonDocument) else one for _, one in documents]
    exports = {
        "csv": view_csv,
        "json": lambda view: json.format(json.encode(view), indent=1).decode(),
        "facts.json": lambda view: json.format(json.encode(view.facts), indent=1).decode(),
    }
    zone = datetime.now().astimezone().tzinfo
    return write_folder(folder, views, exports, *([] if zone is None else [zone]))


def _offline(options: argparse.Namespace) -> bool:
    return any((options.sacct, options.swf, options.csv, options.store))


@contextmanager
def _answers(options: argparse.Namespace, config: Config) -> "Iterator[Answers]":
    if not _offline(options):
        yield HubAnswers(config)
        return
    with _store(options, config) as db:
        yield StoreAnswers(db, config)


class HubAnswers:
    """Views that the hub makes."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def names(self) -> list[str]:
        """Ask for the views that there are."""
        from gpuwaste.analytics.document import ViewsDocument

        return [entry.name for entry in self._ask("/v1/views", {}, ViewsDocument).views]

    def view(self, name: str, period: Period) -> "ViewDocument":
        """Ask for a view."""
        from gpuwaste.analytics.document import ViewDocument

        found: ViewDocument = self._ask(f"/v1/views/{name}", _asked(period), ViewDocument)
        return found

    def compared(self, name: str, before: Period, after: Period) -> "ComparisonDocument":
        """Ask for a comparison."""
        from gpuwaste.analytics.document import ComparisonDocument

        other = {f"other_{key}": value for key, value in _asked(before).items() if key != "offset"}
        found: ComparisonDocument = self._ask(f"/v1/views/{name}/compare", _asked(after) | other, ComparisonDocument)
        return found

    def _ask(self, path: str, parameters: dict[str, str | int], kind: Any) -> Any:
        from gpuwaste.cli.hub_access import LONG_PATIENCE_S, ask_hub
        from gpuwaste.core.codec import convert

        try:
            return convert(ask_hub(self._config, path, parameters, LONG_PATIENCE_S), kind, "the hub's answer")
        except ParseError as error:
            raise ParseError(f"{error}: is the hub of another version?") from error


def _asked(period: Period) -> dict[str, str | int]:
    asked = {"start": period.start, "end": period.end, "clusters": ",".join(period.clusters) or None}
    return {"offset": _offset(period.end)} | {key: value for key, value in asked.items() if value is not None}


class StoreAnswers:
    """Views of a store that nothing else writes to."""

    def __init__(self, db: "Database", config: Config) -> None:
        self._db = db
        self._config = config
        self._rewriter = _rewriter(config)

    def names(self) -> list[str]:
        """Return the views of this version."""
        from gpuwaste.analytics.view import all_views

        return list(all_views())

    def view(self, name: str, period: Period) -> "ViewDocument":
        """Make a view."""
        document: ViewDocument = self._viewed(name, period).document
        return document if self._rewriter is None else self._rewriter.asked(document)

    def compared(self, name: str, before: Period, after: Period) -> "ComparisonDocument":
        """Make a comparison."""
        from gpuwaste.analytics.compare import compare

        return compare(self._viewed(name, before), self._viewed(name, after))

    def _viewed(self, name: str, period: Period) -> Any:
        from gpuwaste.analytics.asking import Asking
        from gpuwaste.analytics.view import look, view_named
        from gpuwaste.waste.ledger_settings import LedgerSettings

        settings = LedgerSettings.from_config(self._config.hub, self._config.agent.ship_every_s)
        return look(view_named(name), Asking(self._db, self._window(period), settings))

    def _window(self, period: Period) -> "Window":
        from gpuwaste.analytics.asking import stored_window

        return stored_window(self._db, period.start, period.end, period.clusters, _offset(period.end))


def _rewriter(config: Config) -> "Rewriter | None":
    """Return what words sentences otherwise, None where no model is configured. Raises ConfigError."""
    if not config.analytics.model_url:
        return None
    from gpuwaste.analytics.language_model import LanguageModel
    from gpuwaste.analytics.rewriter import Rewriter
    from gpuwaste.core.clock import SystemClock

    return Rewriter(LanguageModel(config.analytics), SystemClock())


def _offset(at: int | None) -> int:
    """Return how far this host's zone is ahead of UTC at the end of a period."""
    when = datetime.now().astimezone() if at is None else datetime.fromtimestamp(at).astimezone()
    shift = when.utcoffset()
    return 0 if shift is None else int(shift.total_seconds())


@contextmanager
def _store(options: argparse.Namespace, config: Config) -> "Iterator[Database]":
    """Open the store of --store, or one that the files were imported into: --into keeps it, else it is thrown away."""
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


def _sources(options: argparse.Namespace, config: Config) -> "Iterator[Source]":
    from gpuwaste.cli.sources import file_source
    from gpuwaste.ingest.sources.swf import SwfFile

    for file in options.swf or ():
        yield SwfFile(file)
    for name in ("sacct", "csv"):
        for file in getattr(options, name) or ():
            one = argparse.Namespace(**{**vars(options), "sacct": None, "csv": None, name: file})
            one.clusters = "" if "," in options.clusters else options.clusters
            yield file_source(one, config, options.format)


def _bring(path: Path, source: "Source") -> None:
    from contextlib import closing

    from gpuwaste.cli.history_import import import_progress
    from gpuwaste.core.clock import SystemClock
    from gpuwaste.ingest.importer import import_source
    from gpuwaste.store.hub.history_store import HistoryStore

    with closing(HistoryStore.open(path, SystemClock())) as store, import_progress(source.key, source.size) as progress:
        import_source(store, path, source, progress=progress)


def printed(document: "Found", options: argparse.Namespace) -> str:
    """Return a view for the terminal or for a program."""
    from gpuwaste.analytics.document import ComparisonDocument
    from gpuwaste.cli.options import colour_wanted
    from gpuwaste.report import view_text as texts
    from gpuwaste.report.cells import harmless_document
    from gpuwaste.report.layout import Look

    if options.form == "parsable":
        view = document.after if isinstance(document, ComparisonDocument) else document
        return texts.view_parsable(view, header=not options.noheader)
    shown, look = harmless_document(document), Look(colour=colour_wanted(), header=not options.noheader)
    return texts.comparison_text(shown, look) if isinstance(shown, ComparisonDocument) else texts.view_text(shown, look)


def as_json(documents: "Sequence[tuple[str, Found]]") -> str:
    """Return the documents as one JSON object by view; one alone is itself."""
    from msgspec import to_builtins

    from gpuwaste.report.machine import to_json

    built = {name: to_builtins(document) for name, document in documents}
    return to_json(next(iter(built.values())) if len(built) == 1 else built)
