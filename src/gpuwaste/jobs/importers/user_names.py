"""UserNames: maps users of other clusters to users of the hub's host, by a CSV file of the site."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError, ParseError
from gpuwaste.core.site_files import csv_rows, csv_text
from gpuwaste.core.typed_toml import read_data
from gpuwaste.slurm.accounting.job_record import JobRecord

MAX_B: Final = 4 << 20
MAX_NAMES: Final = 50_000
_COLUMNS: Final = ["cluster", "user", "person"]
_LONGEST: Final = 256
_KEY: Final = "[hub] user_names_file"


@dataclass(frozen=True, slots=True)
class UserNames:
    """The names on the hub's host, by cluster and name there; users not listed have the same name everywhere."""

    of: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def renamed(self, run: JobRecord) -> JobRecord:
        """Return the run with its user's name on the hub's host."""
        person = self.of.get((run.cluster, run.user))
        return run if person is None else replace(run, user=person)

    def without(self, cluster: str) -> "UserNames":
        """Return the names of the other clusters."""
        return UserNames({key: person for key, person in self.of.items() if key[0] != cluster})


SAME: Final = UserNames()


def read_user_names(file: str, own_cluster: str = "") -> UserNames:
    """Return the names of a file, "" for no file. Raises ParseError naming the line, and what to do."""
    if not file:
        return SAME
    path = Path(file)
    try:
        data = read_data(path, MAX_B, "a table of users")
    except ConfigError as error:
        raise ParseError(f"{_KEY}: {error}") from error
    return parse_user_names(data, f"{_KEY}: {path}", own_cluster)


def parse_user_names(data: bytes, where: str, own_cluster: str = "") -> UserNames:
    """Return the names of CSV with the columns cluster, user, person. Raises ParseError."""
    rows = csv_rows(csv_text(data, where), where)
    _, header = next(rows, (1, []))
    if [cell.strip() for cell in header] != _COLUMNS:
        raise ParseError(f"{where}: line 1: expected the columns {','.join(_COLUMNS)}")
    found: dict[tuple[str, str], str] = {}
    for line, row in rows:
        cells = [cell.strip() for cell in row]
        place = f"{where}: line {line}"
        if len(cells) != len(_COLUMNS) or not all(map(_is_name, cells)):
            raise ParseError(f"{place}: expected three names of 1 to {_LONGEST} printable characters, without commas")
        cluster, user, person = cells
        if cluster == own_cluster:
            raise ParseError(f"{place}: {cluster} is the hub's own cluster: its users keep their names")
        if (cluster, user) in found:
            raise ParseError(f"{place}: user {user} of {cluster} for the second time: remove one of the lines")
        if len(found) >= MAX_NAMES:
            raise ParseError(f"{place}: more than {MAX_NAMES} names: list only users whose names differ")
        found[cluster, user] = person
    return UserNames(found)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and text.isprintable() and "," not in text
