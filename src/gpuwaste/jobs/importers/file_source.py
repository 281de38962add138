"""The source for a file given to a command, by the option and the beginning of the file."""

from pathlib import Path

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.importers.file_pages import first_line
from gpuwaste.jobs.importers.history_source import ImportSource
from gpuwaste.jobs.importers.sources.csv import CsvFile
from gpuwaste.jobs.importers.sources.sacct import SacctFile
from gpuwaste.jobs.importers.sources.sacct_json import SacctJson
from gpuwaste.slurm.accounting.json_jobs import looks_like_json


def sacct_file(path: Path, cluster: str, *, zone: str, delimiter: str = "|", columns: str = "") -> ImportSource:
    """Return the source for a file that sacct -P or sacct --json wrote. Raises UsageError, ParseError."""
    if looks_like_json(first_line(path)):
        return SacctJson(path, cluster)
    return SacctFile(path, cluster, delimiter=delimiter, columns=columns, zone=zone)


def csv_file(path: Path, mapping: Path | None, cluster: str, *, zone: str) -> ImportSource:
    """Return the source for a CSV file. Raises UsageError, ConfigError, ParseError."""
    if mapping is None:
        raise UsageError("--csv: --mapping TOML must name the columns (docs/how-to/history.md)")
    return CsvFile(path, mapping, cluster, zone=zone)
