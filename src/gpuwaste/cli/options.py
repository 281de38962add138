"""The options that commands share, with one spelling and one help text each, and the printing of a document.

Slurm's own spelling has priority: sacct's, squeue's, sreport's. `add` is the only way to declare one of these options.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gpuwaste.cli.words import count_word, path_word, size_word
from gpuwaste.core.errors import UsageError

if TYPE_CHECKING:
    from gpuwaste.cli.check import Role
    from gpuwaste.core.config import Config
    from gpuwaste.core.fields import Document
    from gpuwaste.ledger.reports.report_types import GpuTime
    from gpuwaste.show.layout import Look

D = TypeVar("D", bound="Document")
EXIT_NO_DATA: Final = 3
EXIT_OVER: Final = 4
_PERCENT: Final = 100.0
_ROLES: Final = ("agent", "hub", "advisor", "login")


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _PERCENT:
        raise UsageError(f"--fail-above {text[:20]!r}: expected a percentage 0..100")
    return value


DETECTED: Final = "sacct, SWF, CSV or a store (detected)"
"""About --from, where any kind of file will do."""
Kind = Callable[[str], Any] | None
SHARED: Final[Mapping[str, tuple[tuple[str, ...], str, str, Kind]]] = {
    "starttime": (("-S", "--starttime"), "TIME", "start time, as in sacct", None),
    "endtime": (("-E", "--endtime"), "TIME", "end time, as in sacct", None),
    "clusters": (("-M", "--clusters"), "NAME", "cluster name", None),
    "user": (("-u", "--user"), "NAME", "user name", None),
    "accounts": (("-A", "--accounts"), "NAME", "account name", None),
    "allusers": (("-a", "--allusers"), "", "all users", None),
    "jobs": (("-j", "--jobs"), "ID", "job as Slurm prints it: 7, 3_1 (array task), 4+1 (het component)", None),
    "json": (("--json",), "", "print one JSON document", None),
    "parsable": (("-p", "--parsable", "-P", "--parsable2"), "", "rows of cells separated by |, UTC seconds", None),
    "csv": (("--csv",), "", "CSV, safe for spreadsheets", None),
    "noheader": (("-n", "--noheader"), "", "no header lines", None),
    "fail-above": (("--fail-above",), "PERCENT", "exit with code 4 above this percentage", _percent),
    "seed": (("--seed",), "N", "random seed", count_word),
    "threads": (("--threads",), "N", "CPU threads to use", count_word),
    "trials": (("--trials",), "N", "trials of the parameter search per target, 0 for no search", count_word),
    "targets": (("--targets",), "NAMES", "targets to predict, separated by commas", None),
    "from": (("--from",), "FILE", "read jobs from this file", path_word),
    "store": (("--store",), "FILE", "read jobs from a store that gpuwaste history import wrote", path_word),
    "swf": (("--swf",), "FILE", "read jobs from a log in Standard Workload Format", path_word),
    "sacct": (("--sacct",), "FILE", "read jobs from the output of sacct -P or --json (plain, xz, gz, bz2)", path_word),
    "csv-file": (("--csv-file",), "FILE", "read jobs from a CSV file, columns as in --mapping", path_word),
    "mapping": (("--mapping",), "TOML", "for CSV: file that maps columns to fields", path_word),
    "delimiter": (("--delimiter",), "TEXT", "for output of sacct: column separator", None),
    "time-zone": (("--time-zone",), "ZONE", "time zone of dates without one", None),
    "models-dir": (("--models-dir",), "DIR", "directory of the models", path_word),
    "policies": (("--policies",), "DIR", "directory of the policies", path_word),
    "config": (("--config",), "FILE", "configuration file", path_word),
    "role": (("--role",), "ROLE", "role of this host (repeatable)", None),
}  # fmt: skip
"""By name: how the option is written, its metavar ("" for a switch), the help that all commands share, its type."""


def add(parser: Any, name: str, about: str = "", *, default: Any = None, shown: str = "", **more: Any) -> None:
    """Add a shared option to a parser or a group of it.

    `about` describes its effect on this command, `shown` is its default in words.
    """
    names, metavar, text, kind = SHARED[name]
    said = shown or ("" if default is None else str(default))
    words = text + (f": {about}" if about else "") + (f" (default: {said})" if said else "")
    declared = {"metavar": metavar, "type": kind, "default": default} if metavar else {"action": "store_true"}
    parser.add_argument(*names, help=words, **{**declared, **more})


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config."""
    add(parser, "config", shown="/etc/gpuwaste/gpuwaste.toml")


def add_role(parser: argparse.ArgumentParser) -> None:
    """Add --role."""
    shown = "every program that is installed here or has run here"
    add(parser, "role", f"{', '.join(_ROLES)}", shown=shown, action="append", choices=_ROLES)


def add_window(parser: Any, start: str | None, about: str = "", *, shown: str = "") -> None:
    """Add -S and -E, which `times.window_of` reads."""
    add(parser, "starttime", about, default=start, shown=shown)
    add(parser, "endtime", default="now")


def add_learning(parser: argparse.ArgumentParser, trials: int) -> None:
    """Add --trials, --seed and --threads."""
    add(parser, "trials", default=trials)
    add(parser, "seed", default=1)
    add(parser, "threads", default=2)


def roles_of(options: argparse.Namespace, config: "Config") -> "frozenset[Role]":
    """Return the roles that the options name, else those of this host."""
    from gpuwaste.cli.check import Role
    from gpuwaste.cli.doctor_checks import roles_here

    return frozenset(map(Role, options.role)) if options.role else roles_here(config)


def add_formats(parser: argparse.ArgumentParser, share: str = "share of GPU time wasted") -> None:
    """Add the formats, -n and --fail-above; `share` names what is compared with its percentage."""
    add_forms(parser)
    add(parser, "fail-above", share)


def add_forms(parser: argparse.ArgumentParser, *, table: bool = True) -> None:
    """Add the formats and -n, for a document that has no share of waste; one that is no `table` has JSON alone."""
    form = parser.add_mutually_exclusive_group()
    for name in ("json", "parsable", "csv") if table else ("json",):
        add(form, name, action="store_const", dest="form", const=name)
    if table:
        add(parser, "noheader")
    parser.set_defaults(fail_above=None, noheader=False)


def config_of(options: argparse.Namespace) -> "Config":
    """Read the configuration that the options name."""
    from gpuwaste.core.config import load_config

    return load_config(options.config)


def emit(
    raw: Mapping[str, Any],
    document: D,
    options: argparse.Namespace,
    text: "Callable[[D, Look], str]",
    *,
    empty: bool,
    wasted: float | None,
) -> int:
    """Print a document in the requested form and return the exit code; `wasted` is its share of the GPU-time, 0..1.

    JSON is `raw`, as received; the other forms are made of `document`, which `typed` returned.
    """
    sys.stdout.write(_rendered(raw, document, options, text))
    if empty:
        return EXIT_NO_DATA
    over = options.fail_above is not None and wasted is not None and wasted * _PERCENT > options.fail_above
    return EXIT_OVER if over else 0


def emit_own(
    document: D, options: argparse.Namespace, text: "Callable[[D, Look], str]", *, empty: bool, wasted: float | None
) -> int:
    """Print a document that was made here, as `emit` does."""
    shown = _harmless(document) if options.form is None else document
    return emit(document.to_json(), shown, options, text, empty=empty, wasted=wasted)


def print_own(document: D, text: "Callable[[D, Look], str]", *, as_json: bool) -> None:
    """Print a document that was made here as text or JSON."""
    from gpuwaste.show.machine_formats import to_json

    sys.stdout.write(to_json(document.to_json()) if as_json else as_text(_harmless(document), text))


def typed(raw: Mapping[str, Any], kind: type[D], *, printed: bool) -> D:
    """Return the answer as its declared type. Raises ParseError.

    Where it is `printed` as text, its texts are made harmless for a terminal; rows of cells do that themselves.
    """
    from gpuwaste.core.codec import convert
    from gpuwaste.core.errors import ParseError

    try:
        document = convert(raw, kind, "the hub's answer")
    except ParseError as error:
        raise ParseError(f"{error}: does the hub run another version?") from error
    return _harmless(document) if printed else document


def _harmless(document: D) -> D:
    from gpuwaste.show.terminal_cells import harmless_document

    shown = harmless_document(document)
    if text := getattr(document, "text", ""):  # a mail as it would be sent: many lines
        from msgspec.structs import replace

        shown = replace(shown, text="\n".join(harmless_document(text.split("\n"))))
    return shown


def wasted_share(*totals: "GpuTime") -> float | None:
    """Return wasted over allocated of these sums; None where nothing was allocated."""
    allocated = sum(t.gpu_s for t in totals)
    return sum(t.wasted_s for t in totals) / allocated if allocated else None


def colour_wanted() -> bool:
    """Return whether stdout is a terminal that may be coloured (NO_COLOR, TERM=dumb)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def as_text(document: D, text: "Callable[[D, Look], str]", *, header: bool = True, recorded: bool = False) -> str:
    """Return a document that `typed` made harmless as words for a terminal."""
    return text(document, terminal_look(header=header, recorded=recorded))


def terminal_look(*, header: bool = True, recorded: bool = False) -> "Look":
    """Return how a text is printed on this terminal."""
    from gpuwaste.cli.terminal_width import terminal_columns
    from gpuwaste.show.layout import Look

    return Look(colour=colour_wanted(), header=header, recorded=recorded, columns=terminal_columns())


def _rendered(
    raw: Mapping[str, Any], document: D, options: argparse.Namespace, text: "Callable[[D, Look], str]"
) -> str:
    if options.form is None:
        return as_text(document, text, header=not options.noheader, recorded=bool(raw.get("recorded")))
    from gpuwaste.show import machine_formats

    if options.form == "json":
        return machine_formats.to_json(raw)
    write = machine_formats.to_csv if options.form == "csv" else machine_formats.to_parsable
    return write(document, header=not options.noheader, part=getattr(options, "table", ""))


def add_as_job(parser: argparse.ArgumentParser, shared: str) -> None:
    """Add --as-job with its options; `shared` names what has to be on shared disk."""
    parser.add_argument("--as-job", action="store_true", help=f"run as a job of this Slurm cluster; {shared}")
    add_job_options(parser, "a job", 240)


def add_job_options(parser: argparse.ArgumentParser, of: str, minutes: int) -> None:
    """Add the options for sbatch: partition, account, time limit."""
    parser.add_argument("--partition", default="", metavar="NAME", help="with --as-job: partition")
    add(parser, "accounts", "with --as-job, the account to charge")
    parser.add_argument(
        "--time",
        type=size_word,
        default=minutes,
        metavar="MINUTES",
        help=f"with --as-job: time limit of {of} (default: {minutes})",
    )
