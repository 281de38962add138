"""Options that several commands share, and the printing of a document as they say."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpuwaste.core.config import Config, load_config
from gpuwaste.core.errors import UsageError

if TYPE_CHECKING:
    from gpuwaste.cli.check import Role
    from gpuwaste.report.layout import Look

EXIT_NO_DATA: Final = 3
EXIT_OVER: Final = 4
_PERCENT: Final = 100.0
_ROLES: Final = ("agent", "hub", "advisor", "login")


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add --config."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="instead of /etc/gpuwaste/gpuwaste.toml")


def add_role(parser: argparse.ArgumentParser) -> None:
    """Add --role."""
    parser.add_argument(
        "--role",
        action="append",
        choices=_ROLES,
        help="what this host is, several times where it is several things; else what is installed or has run here",
    )


def roles_of(options: argparse.Namespace, config: Config) -> "frozenset[Role]":
    """Return the roles that the options name, else those that this host has."""
    from gpuwaste.cli.check import Role
    from gpuwaste.cli.doctor import roles_here

    return frozenset(map(Role, options.role)) if options.role else roles_here(config)


def add_formats(parser: argparse.ArgumentParser, over: str = "more than PCT %% of the GPU-time is wasted") -> None:
    """Add the formats, -n and --fail-over; `over` says what is compared with its percentage."""
    form = parser.add_mutually_exclusive_group()
    for name, text in (
        ("json", "the whole document as JSON"),
        ("parsable", "one line per row, cells separated by |, UTC seconds"),
        ("csv", "CSV, safe for spreadsheets"),
    ):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=text)
    parser.add_argument("-n", "--noheader", action="store_true", help="no header lines")
    parser.add_argument("--fail-over", type=_percent, metavar="PCT", help=f"exit with 4 where {over}")


def config_of(options: argparse.Namespace) -> Config:
    """Read the configuration that the options name."""
    return load_config(options.config)


def emit(
    document: Mapping[str, Any],
    options: argparse.Namespace,
    text: "Callable[[Mapping[str, Any], Look], str]",
    *,
    empty: bool,
    wasted: float | None,
) -> int:
    """Print a document in the form asked for and return the exit code; `wasted` is its share of the GPU-time, 0..1."""
    sys.stdout.write(_rendered(document, options, text))
    if empty:
        return EXIT_NO_DATA
    over = options.fail_over is not None and wasted is not None and wasted * _PERCENT > options.fail_over
    return EXIT_OVER if over else 0


def wasted_share(*totals: Mapping[str, Any]) -> float | None:
    """Return wasted over allocated of these sums; None where nothing was allocated."""
    allocated = sum(t.get("gpu_s", 0.0) for t in totals)
    return sum(t.get("wasted_s", 0.0) for t in totals) / allocated if allocated else None


def colour_wanted() -> bool:
    """Tell whether stdout is a terminal that may be coloured (NO_COLOR, TERM=dumb)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def as_text(
    document: Mapping[str, Any],
    text: "Callable[[Mapping[str, Any], Look], str]",
    *,
    header: bool = True,
    recorded: bool = False,
) -> str:
    """Return a document as words for a terminal; nothing that stands in it acts on one."""
    from gpuwaste.report.cells import harmless_document
    from gpuwaste.report.layout import Look

    shown = harmless_document(document)
    if isinstance(document.get("text"), str):  # a mail as it would go: many lines
        shown["text"] = "\n".join(harmless_document(document["text"].split("\n")))
    return text(shown, Look(colour=colour_wanted(), header=header, recorded=recorded))


def _rendered(
    document: Mapping[str, Any], options: argparse.Namespace, text: "Callable[[Mapping[str, Any], Look], str]"
) -> str:
    if options.form is None:
        header, recorded = not options.noheader, bool(document.get("recorded"))
        return as_text(document, text, header=header, recorded=recorded)
    from gpuwaste.report import machine

    if options.form == "json":
        return machine.to_json(document)
    write = machine.to_csv if options.form == "csv" else machine.to_parsable
    return write(document, header=not options.noheader)


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _PERCENT:
        raise UsageError(f"--fail-over {text[:20]!r}: expected a percentage 0..100")
    return value
