"""The mapping of a CSV file of jobs: a TOML file that maps columns to fields, with their units and words.

cluster = "old"                # unless the command says it
delimiter = ","                # default ,
zone = "Europe/Oslo"           # of times without an offset
time_format = "%d.%m.%Y %H:%M" # iso (default), epoch, or as strptime takes it
[columns]                      # field of a run = column of the file; job_id and submit must be there
job_id = "id"
submit = "submitted"
[units]                        # of amounts: s ms min h d, B K M G T; default s and B; of exit_code: wait
elapsed_s = "min"
[states]                       # words of the file = states of Slurm; others are taken as they are
"done" = "COMPLETED"
[tres]                         # the site's own ids in lists like 1=4,2=8000,1002=1
1002 = "gres/gpu"
"""

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import tzinfo
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import ConfigError, ParseError, UsageError
from gpuwaste.core.job_states import ENDED
from gpuwaste.slurm.accounting.job_record import JobDetails, JobRecord
from gpuwaste.slurm.accounting.requested import is_no_number
from gpuwaste.slurm.accounting.tres_amounts import gpu_count, memory_b, parse_tres
from gpuwaste.slurm.formats.slurm_times import zone_of

REQUEST: Final = {"req_cpus": "cpu", "req_mem_b": "mem", "req_nodes": "node", "req_gpus": "gres/gpu"}
_NOT_MAPPED: Final = frozenset({"cluster", "printed_id", "het_job_id", "het_offset", "verdict_id"})
_DETAILS: Final = frozenset(f.name for f in fields(JobDetails))
FIELDS: Final = frozenset({f.name for f in fields(JobRecord)} - _NOT_MAPPED) | _DETAILS | REQUEST.keys() | {"wait_s"}
UNITS: Final = {
    "s": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0, "d": 86400.0,
    "B": 1.0, "K": 1024.0, "M": 1024.0**2, "G": 1024.0**3, "T": 1024.0**4,
}  # fmt: skip
_SECONDS: Final = frozenset({"s", "ms", "min", "h", "d"})
STATES: Final = ENDED | {"RUNNING", "PENDING", "SUSPENDED"}
WAIT: Final = "wait"  # the unit of an exit code that is a wait status, as slurmdbd keeps it
_TOP: Final = frozenset(
    {"cluster", "delimiter", "zone", "time_format", "encoding", "columns", "units", "states", "tres"}
)
OWN_IDS: Final = {
    "1": "cpu",
    "2": "mem",
    "3": "energy",
    "4": "node",
    "5": "billing",
    "6": "fs/disk",
    "7": "vmem",
    "8": "pages",
}  # fmt: skip - the ids that are the same at every site; a site's gres have their own from 1001 on
_ABSENT: Final = frozenset({"", "(null)", "N/A", "NULL", "None", "null", "NA", "nan", "NaN", "-", "\\N"})
_MEBI: Final = frozenset({"mem", "vmem"})  # kept as MiB


@dataclass(frozen=True, slots=True)
class CsvMapping:
    """A mapping that was checked; `units` are factors to seconds or bytes."""

    columns: Mapping[str, str]
    zone: tzinfo
    cluster: str = ""
    delimiter: str = ","
    encoding: str = "utf-8"
    time_format: str = "iso"
    units: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    tres: Mapping[str, str] = field(default_factory=dict)
    wait_status: bool = False


def load_mapping(path: Path) -> str:
    """Return the text of a mapping. Raises UsageError."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: invalid TOML: {error}") from error


def parse_mapping(text: str, where: str, zone: str = "UTC") -> CsvMapping:
    """Read a mapping; `zone` is taken where it names none. Raises ConfigError naming `where` and the key."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: invalid TOML: {error}") from error
    _known(data, _TOP, where)
    columns, units, states, tres = (_table(data, name, where) for name in ("columns", "units", "states", "tres"))
    _known(columns, FIELDS, f"{where}: [columns]")
    for needed in ("job_id", "submit"):
        if needed not in columns:
            raise ConfigError(f"{where}: [columns] lacks {needed}")
    _check_units(units, where)
    try:
        check_names(tres)
    except ParseError as error:
        raise ConfigError(f"{where}: [tres] {error}") from error
    for word, state in states.items():
        if state not in STATES:
            raise ConfigError(f"{where}: [states] {word!r} = {state!r}: expected one of {', '.join(sorted(STATES))}")
    delimiter = str(data.get("delimiter", ","))
    if len(delimiter) != 1:
        raise ConfigError(f"{where}: delimiter {delimiter!r}: expected one character")
    return CsvMapping(
        columns=columns,
        zone=zone_of(str(data.get("zone", zone))),
        cluster=str(data.get("cluster", "")),
        delimiter=delimiter,
        encoding=_encoding(str(data.get("encoding", "utf-8")), where),
        time_format=str(data.get("time_format", "iso")),
        units={name: UNITS[unit] for name, unit in units.items() if unit != WAIT},
        states=states,
        tres=tres,
        wait_status=units.get("exit_code") == WAIT,
    )


def _check_units(units: Mapping[str, str], where: str) -> None:
    for name, unit in units.items():
        allowed = _SECONDS if name.endswith("_s") else UNITS.keys() - _SECONDS if name.endswith("_b") else frozenset()
        allowed |= {WAIT} if name == "exit_code" else set()
        if unit not in allowed:
            raise ConfigError(
                f"{where}: [units] {name} = {unit!r}: expected one of {', '.join(sorted(allowed)) or 'none'}"
            )


def _encoding(name: str, where: str) -> str:
    try:
        b"".decode(name)
    except LookupError:
        raise ConfigError(f"{where}: encoding {name!r}: unknown") from None
    return name


def _table(data: Mapping[str, Any], name: str, where: str) -> dict[str, str]:
    table = data.get(name, {})
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise ConfigError(f"{where}: [{name}]: expected a table of texts")
    return table


def _known(data: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    for name in data:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(known))}"
            raise ConfigError(f"{where}: unknown key {name!r}: {hint}")


@dataclass(frozen=True, slots=True)
class TresList:
    """A list that can be stored: `text` has only names, `unknown` the ids without a name."""

    text: str = ""
    unknown: tuple[str, ...] = ()

    @property
    def gpus_known(self) -> bool:
        """Whether the number of GPUs is known from the list: one of its unknown ids may be a GPU."""
        return bool(self.text) and (not self.unknown or "gres/gpu" in self.text)

    def amount(self, name: str) -> str:
        """Return an amount as printed, "" where it is missing."""
        return parse_tres(self.text).get(name, "")


def read_tres(text: str, names: Mapping[str, str]) -> TresList:
    """Read a list; `names` are the site's ids. Amounts that mean "not set" are left out. Raises ParseError."""
    if text.strip() in _ABSENT:
        return TresList()
    parts, unknown = [], []
    for name, amount in parse_tres(text.strip().strip("{}")).items():
        known = name if not name.isdigit() else names.get(name) or OWN_IDS.get(name)
        if amount.isascii() and amount.isdigit() and (len(amount) > 20 or is_no_number(int(amount))):  # noqa: PLR2004
            continue
        if known is None:
            unknown.append(name)
        else:
            parts.append(f"{known}={amount}{'M' if known in _MEBI and name.isdigit() else ''}")
    found = TresList(",".join(parts), tuple(unknown))
    amounts = parse_tres(found.text)
    gpu_count(amounts)
    memory_b(amounts)
    return found


def check_names(names: Mapping[str, str]) -> None:
    """Raise ParseError for a key that is not an id or a name that is not a TRES."""
    for number, name in names.items():
        if not (number.isascii() and number.isdigit()) or not name or any(sign in name for sign in "=, "):
            raise ParseError(f'{number!r} = {name!r}: expected an id and its TRES: "1002" = "gres/gpu"')
