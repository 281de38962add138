"""What `gpuwaste analyze` does: views of the hub, or of files that are imported first; printed or written."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpuwaste.cli.time_options import parse_time
from gpuwaste.cli.view_answers import ViewPeriod, of_files, view_answers
from gpuwaste.core.config import Config
from gpuwaste.core.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuwaste.show.view_document import ComparisonDocument, ViewDocument

    Found = ViewDocument | ComparisonDocument

PREVIOUS: Final = "previous"
CLUSTERS: Final = "clusters"
_DAYS: Final = "now-30days"
_PAIR: Final = 2


def found(options: argparse.Namespace, config: Config) -> "Iterator[tuple[str, Found]]":
    """Yield the views that the options name, as they are ready; without names all, the largest finding first.

    Raises GpuwasteError.
    """
    from gpuwaste.views.ranking import by_finding

    with view_answers(options, config) as answers:
        known = answers.names()
        wanted = options.view or known
        for name in wanted:
            if name not in known:
                raise UsageError(f"--view {name[:40]}: expected one of {', '.join(known)}")
        before, after = periods(options, offline=of_files(options))
        if options.form == "parsable":  # the form without notes
            sys.stderr.writelines(f"gpuwaste: {note}\n" for note in answers.unread)
        documents = (
            answers.view(name, after) if before is None else answers.compared(name, before, after)
            for name in dict.fromkeys(wanted)
        )
        for document in documents if options.view else by_finding(documents):
            yield document.view, document


def periods(options: argparse.Namespace, *, offline: bool) -> tuple[ViewPeriod | None, ViewPeriod]:
    """Return the period to compare with, None for none, and the period of the views. Raises UsageError."""
    clusters = tuple(filter(None, options.clusters.split(",")))
    start = options.starttime or (None if offline else _DAYS)
    first = None if start is None else parse_time(start)
    last = None if offline and options.endtime == "now" else parse_time(options.endtime)
    if first is not None and last is not None and first >= last:
        raise UsageError(f"-S {start} is not before -E {options.endtime}")
    after = ViewPeriod(first, last, clusters)
    if options.compare is None:
        return None, after
    if options.compare == CLUSTERS:
        if len(clusters) != _PAIR:
            raise UsageError("--compare clusters: name two clusters with -M A,B")
        return ViewPeriod(first, last, clusters[:1]), ViewPeriod(first, last, clusters[1:])
    if options.compare == PREVIOUS:
        if first is None or last is None:
            raise UsageError("--compare previous: give -S and -E")
        return ViewPeriod(first - (last - first), first, clusters), after
    words = options.compare.split(",")
    if len(words) != _PAIR:
        raise UsageError(f"--compare {options.compare[:40]}: expected previous, clusters or START,END")
    other = parse_time(words[0]), parse_time(words[1])
    if other[0] >= other[1]:
        raise UsageError(f"--compare: {words[0]} is not before {words[1]}")
    return ViewPeriod(*other, clusters), after


def write(folder: Path, name: str, document: "Found") -> list[Path]:
    """Write a view's table, facts and document to a folder; returns the files. Raises StoreError."""
    from msgspec import json

    from gpuwaste.core.files import write_whole
    from gpuwaste.show.view_document import ComparisonDocument
    from gpuwaste.show.view_text import view_csv

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

    from gpuwaste.show.view_text import comparison_csv, view_csv

    try:
        from gpuwaste.views.offline_pages import write_folder
    except ImportError as error:
        raise UsageError(f"--html: Python's {error.name} is not here: install gpuwaste-hub") from error

    def printed_json(value: object) -> str:
        return json.format(json.encode(value), indent=1).decode()

    exports = {"csv": view_csv, "json": printed_json, "facts.json": lambda view: printed_json(view.facts)}
    compared = {"csv": comparison_csv, "json": printed_json}
    zone = datetime.now().astimezone().tzinfo or UTC
    return write_folder(folder, [document for _, document in documents], exports, compared, zone)


def printed(document: "Found", options: argparse.Namespace) -> str:
    """Return a view for the terminal or for a program."""
    from gpuwaste.cli.options import terminal_look
    from gpuwaste.show import view_text as texts
    from gpuwaste.show.terminal_cells import harmless_document
    from gpuwaste.show.view_document import ComparisonDocument

    if options.form == "parsable":
        view = document.after if isinstance(document, ComparisonDocument) else document
        return texts.view_parsable(view, header=not options.noheader)
    shown, look = harmless_document(document), terminal_look(header=not options.noheader)
    short = "" if options.view else texts.without_data_text(shown)
    return short or (
        texts.comparison_text(shown, look) if isinstance(shown, ComparisonDocument) else texts.view_text(shown, look)
    )


def as_json(documents: "Sequence[tuple[str, Found]]") -> str:
    """Return the documents as one JSON object by view; a single one as itself."""
    from msgspec import to_builtins

    from gpuwaste.show.machine_formats import to_json

    built = {name: to_builtins(document) for name, document in documents}
    return to_json(next(iter(built.values())) if len(built) == 1 else built)
