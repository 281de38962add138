"""The source for a file given to a command, by the option and the beginning of the file."""

from pathlib import Path
from typing import Final

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.importers.file_pages import first_line
from gpuwaste.jobs.importers.history_source import ImportSource
from gpuwaste.jobs.importers.sources.csv import CsvFile
from gpuwaste.jobs.importers.sources.sacct import SacctFile
from gpuwaste.jobs.importers.sources.sacct_json import SacctJson
from gpuwaste.slurm.accounting.json_jobs import looks_like_json

_DUCKDB: Final = (8, b"DUCK")
_SWF_FIELDS: Final = 18


def kind_of(path: Path, *, mapped: bool) -> str:
    """Return what a file is by its beginning: store, swf, sacct or csv_file; `mapped`: a mapping of columns is given.

    Raises UsageError where it is none of these or cannot be read, ParseError for a damaged compressed file.
    """
    place, magic = _DUCKDB
    try:
        with path.open("rb") as file:
            begin = file.read(place + len(magic))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    if begin[place:] == magic:
        return "store"
    line = first_line(path).strip()
    fields = line.split()
    if line.startswith(b";") or (len(fields) == _SWF_FIELDS and all(map(_is_number, fields))):
        return "swf"
    if mapped:
        return "csv_file"
    if looks_like_json(line) or b"|" in line:
        return "sacct"
    raise UsageError(
        f"{path}: unknown kind of file: expected output of sacct -P or --json, SWF, a store, or CSV with --mapping: "
        "name it with --sacct, --swf, --store or --csv-file"
    )


def _is_number(field: bytes) -> bool:
    return field.lstrip(b"-").replace(b".", b"", 1).isdigit()


def sacct_file(path: Path, cluster: str, *, zone: str, delimiter: str = "|", columns: str = "") -> ImportSource:
    """Return the source for a file that sacct -P or sacct --json wrote. Raises UsageError, ParseError."""
    if looks_like_json(first_line(path)):
        return SacctJson(path, cluster)
    return SacctFile(path, cluster, delimiter=delimiter, columns=columns, zone=zone)


def csv_file(path: Path, mapping: Path | None, cluster: str, *, zone: str) -> ImportSource:
    """Return the source for a CSV file. Raises UsageError, ConfigError, ParseError."""
    if mapping is None:
        raise UsageError("CSV: --mapping TOML must name the columns (docs/how-to/history.md)")
    return CsvFile(path, mapping, cluster, zone=zone)
