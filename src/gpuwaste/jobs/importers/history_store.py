"""HistoryStore: a hub's store for the bulk import, written one page at a time, each in one transaction with its mark.

One process holds the file, or the lake's lease: no hub runs on it meanwhile. A method's writes are on disk when it
returns.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.jobs.importers.page_files import PageFiles
from gpuwaste.jobs.run_changes import (
    JOB_COLUMNS,
    STEP_COLUMNS,
    USE_COLUMNS,
    take_changed,
    take_details,
    take_steps,
    take_uses,
)
from gpuwaste.slurm.accounting.line_format import NULL, SEPARATOR
from gpuwaste.slurm.accounting.sacct_table import COLUMNS as LINE_COLUMNS
from gpuwaste.slurm.accounting.use_lines import USE_LINE_COLUMNS
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import Aside, mark_of, put_aside
from gpuwaste.store.hub.lake_store import lake_options
from gpuwaste.store.lake_database import LakeDatabase, LakeLocation

PAGE_VERSION: Final = 3  # increased when the parsers return new columns
UNREAD: Final = "unread "  # a note of a page with this name and a field's: runs in which the field cannot be read
KEPT_CLASHES: Final = 2000  # quarantined per page; all are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePart:
    """Place of a page in a source: bytes of a file (decompressed) or UTC seconds of a window; `line` is its first."""

    position: int
    until: int
    line: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PagePlace(PagePart):
    """The same with its number, and the `place` within which its lines are numbered."""

    number: int
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow(PagePlace):
    """A page that was parsed; see table pages. `rows` is a file with a JSON array, one run of each key."""

    digest: str
    size_b: int
    packed_b: int
    lines: int
    runs: int
    rows: Path
    bad: Sequence[Aside]
    bad_count: int
    notes: Mapping[str, int]
    mark: int
    unread: Mapping[str, Aside] = field(default_factory=dict)  # fields that some rows have unreadable: the first row
    steps: Path | None = None  # a file with a JSON array of their steps, where there are some
    uses: Path | None = None  # the same of what accounting has of the use of their GPUs

    @property
    def step_file(self) -> Mapping[str, Any]:
        """The parameters of query steps_stage_file."""
        return {"file": str(self.steps), "columns": STEP_COLUMNS.types} if self.steps else {}

    @property
    def use_file(self) -> Mapping[str, Any]:
        """The parameters of query uses_stage_file."""
        return {"file": str(self.uses), "columns": USE_COLUMNS.types} if self.uses else {}

    def discard(self) -> None:
        """Remove the files after they have been stored."""
        for file in (self.rows, self.steps, self.uses):
            if file is not None:
                file.unlink(missing_ok=True)


def source_notes(db: Database, key: str) -> tuple[int, dict[str, int]]:
    """Return the runs of a source in a store and the sums of its parser's counts."""
    runs, sums = 0, dict[str, int]()
    for row in db.rows("import_notes", {"key": key}):
        runs += row["runs"]
        for name, count in json.loads(row["notes"]).items():
            sums[name] = sums.get(name, 0) + count
    return runs, sums


def unread_fields(notes: Mapping[str, int]) -> dict[str, int]:
    """Return the number of runs in which each field cannot be read, from the parser's counts."""
    return {name.removeprefix(UNREAD): runs for name, runs in sorted(notes.items()) if name.startswith(UNREAD)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(PagePart):
    """The last page of a source that was read: its place, its digest, the context of that import, and its end."""

    digest: str
    context: Mapping[str, str]
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPage(PagePlace):
    """A page that can be parsed again."""

    import_id: int
    kind: str
    key: str
    context: Mapping[str, str]
    digest: str


class HistoryStore:
    """Jobs, pages and marks, written in bulk."""

    def __init__(self, database: Database, clock: Clock, files: PageFiles) -> None:
        self._db = database
        self._clock = clock
        self.files = files

    @classmethod
    def open(cls, path: Path, clock: Clock, options: Mapping[str, str] | None = None) -> Self:
        """Open or create the store; `options` are settings of DuckDB. Raises StoreError.

        The error names what to do where a hub holds the file.
        """
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path.parent}: cannot be created: {error.strerror}") from error
        try:
            database = Database.open(path, "hub", {"threads": "2", **(options or {})})
        except StoreError as error:
            if "lock on file" not in str(error):
                raise
            raise StoreError(
                f"{path}: used by another process, probably a running hub: write to another file with --into, or "
                "stop the hub meanwhile; the hub itself reads the last hub.sacct_first_days days when it starts first"
            ) from error
        return cls._of(database, path, clock)

    @classmethod
    def open_lake(cls, location: LakeLocation, path: Path, clock: Clock, scratch: Path) -> Self:
        """Open or create a lake in place of the file at `path`, next to which pages are kept. Raises StoreError.

        DuckDB spills into the directory `scratch`.
        """
        return cls._of(LakeDatabase.open_lake(location, "hub", lake_options(scratch)), path, clock)

    @classmethod
    def read_lake(cls, location: LakeLocation, path: Path, clock: Clock, scratch: Path) -> Self:
        """Open a lake on which a hub may run, for the methods that only read. Raises StoreError."""
        return cls._of(LakeDatabase.open_reader(location, "hub", lake_options(scratch)), path, clock)

    @classmethod
    def _of(cls, database: Database, path: Path, clock: Clock) -> Self:
        files = PageFiles(path)
        try:
            files.prepare()
        except StoreError:
            database.close()
            raise
        return cls(database, clock, files)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def begin(self, kind: str, key: str, cluster: str, context: Mapping[str, str]) -> int:
        """Record that an import begins; return its id."""
        values = {"kind": kind, "key": key, "cluster": cluster, "context": json.dumps(dict(context), sort_keys=True)}
        with self._db.writing():
            row = self._db.rows("import_begin", {**values, "now": self._clock.utc_s()})[0]
        return int(row["id"])

    def end(self, import_id: int, end_rule: str) -> None:
        """Record that an import has read everything."""
        with self._db.writing():
            self._db.run("import_end", {"id": import_id, "end_rule": end_rule, "now": self._clock.utc_s()})

    def resume(self, key: str) -> Resume | None:
        """Return the newest page of a source, None where it was never read."""
        rows = self._db.rows("page_last", {"key": key})
        if not rows:
            return None
        row = rows[0]
        context = json.loads(row["context"])
        ended = row["ended_utc"] is not None
        return Resume(
            position=row["position"], until=row["until"], line=row["line"], digest=row["digest"], context=context,
            ended=ended,
        )  # fmt: skip

    def mark(self, key: str) -> int | None:
        """Return a source's mark."""
        return mark_of(self._db, key)

    def take(self, import_id: int, key: str, page: PageRow, *, once: bool = False) -> tuple[PageRow, int]:
        """Store a page's runs and bad rows, record the page, and set the source's mark.

        Returns the page and how many runs changed. `once`: each row is a run, so that a row with the key of a run of an
        earlier page that has ended and has other values is another run: it is a bad row of the returned page.
        """
        with self._db.writing():
            page, changed = self._take_runs(page, once=once)
            self._set_aside(page)
            values = {
                name: getattr(page, name)
                for name in ("number", "place", "digest", "size_b", "packed_b", "position", "until", "line", "lines")
            }
            values |= {"import_id": import_id, "key": key, "runs": page.runs, "changed": changed}
            self._db.run(
                "page_add",
                {
                    **values,
                    "bad": page.bad_count,
                    "notes": _notes(page),
                    "now": self._clock.utc_s(),
                    "version": PAGE_VERSION,
                },
            )
            self._db.run("mark_set", {"key": key, "value": page.mark})
        return page, changed

    def add_lines(self, jobs: Sequence[Path], uses: Sequence[Path] = ()) -> None:
        """Append what files with the lines of a `PageTable` have, to a store that was new."""
        with self._db.writing():
            self._db.run("jobs_add_lines", _lines(jobs, LINE_COLUMNS, JOB_COLUMNS.types))
            if uses:
                self._db.run("uses_add_lines", _lines(uses, USE_LINE_COLUMNS, USE_COLUMNS.types))

    def drop_repeats(self) -> None:
        """Leave one row of each run, after `add_lines`, and no submission that waits where its run is known."""
        with self._db.writing():
            for query in ("jobs_drop_repeats", "jobs_drop_waiting", "uses_drop_repeats"):
                self._db.run(query)

    def forget_taken(self) -> None:
        """Begin with a source: clear the record of its stored pages."""
        self._db.run("import_keys_create")

    def take_again(self, import_id: int, page: PageRow, *, once: bool = False) -> tuple[PageRow, int]:
        """Store the new result of a kept page, replacing its bad rows; returns the same as `take`."""
        with self._db.writing():
            page, changed = self._take_runs(page, once=once)
            self._db.run("quarantine_forget", {"source": page.place, "line": page.line, "lines": page.lines})
            self._set_aside(page)
            values = {"import_id": import_id, "number": page.number, "runs": page.runs, "bad": page.bad_count}
            self._db.run("page_again", {**values, "notes": _notes(page), "version": PAGE_VERSION})
        return page, changed

    def drop(self, digest: str) -> None:
        """Remove a page's file where no import has stored the page."""
        if not self._db.rows("page_used", {"digest": digest}):
            self.files.remove(digest)

    def kept_pages(self) -> list[KeptPage]:
        """Return every page that was read, in that order."""
        return list(map(kept_page, self._db.rows("pages_kept")))

    def notes(self, key: str) -> tuple[int, dict[str, int]]:
        """Return the runs of a source and the sums of its parser's counts."""
        return source_notes(self._db, key)

    def ask(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return the rows of a named query that only reads."""
        return self._db.rows(query, parameters)

    def _take_runs(self, page: PageRow, *, once: bool) -> tuple[PageRow, int]:
        if not page.runs:
            return page, 0
        self._db.run("jobs_stage_create")
        self._db.run("jobs_stage_file", {"file": str(page.rows), "columns": JOB_COLUMNS.types})
        self._db.run("jobs_stage_stale")
        for query in ("jobs_known", "jobs_stage_keep", "jobs_changed", "jobs_detailed"):
            self._db.run(query)
        if once:
            page = self._without_clashes(page)
        changed = take_changed(self._db, "jobs_delete_replaced").runs
        take_steps(self._db, "steps_stage_file", page.step_file)
        take_uses(self._db, "uses_stage_file", page.use_file, self._clock.utc_s())
        return page, changed + len(take_details(self._db))

    def _without_clashes(self, page: PageRow) -> PageRow:
        """Remove the runs that would replace another run of this import from the changed ones, as bad rows."""
        clashes = self._db.rows("jobs_clashes")
        self._db.run("jobs_clashes_delete")
        self._db.run("import_keys_add")
        reason = f"same job id and start as a row before line {page.line}, other values differ"
        bad = [Aside(page.line, reason, row["raw"]) for row in clashes[:KEPT_CLASHES]]
        count = len(clashes)
        return replace(page, runs=page.runs - count, bad=[*page.bad, *bad], bad_count=page.bad_count + count)

    def _set_aside(self, page: PageRow) -> None:
        if page.bad:
            put_aside(self._db, page.place, page.bad, self._clock.utc_s())


def kept_page(row: Mapping[str, Any]) -> KeptPage:
    """Return the page of a row of query pages_kept or pages_due."""
    return KeptPage(**{**row, "context": json.loads(row["context"])})


def _lines(files: Sequence[Path], columns: Sequence[str], types: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the parameters of a query that reads files of lines."""
    named = {name: types[name] for name in columns}
    return {"files": [str(file) for file in files], "columns": named, "separator": SEPARATOR, "null": NULL}


def _notes(page: PageRow) -> str:
    return json.dumps(dict(page.notes), sort_keys=True)
