"""Analyze the whole system: queue, waits, sizes, end states, waste; from the hub, or from accounting in files."""

import argparse
import sys

from gpuwaste.cli.options import DETECTED, add, add_config, add_window, config_of
from gpuwaste.cli.time_options import MonthAction
from gpuwaste.cli.words import path_word

HELP = "views of the whole system: jobs, waits, sizes, limits, waste; two periods compared"
EXAMPLES = (
    ("gpuwaste analyze --view waits", "How long jobs waited in the last 30 days (operators)."),
    ("gpuwaste analyze --sacct jobs.txt -o views", "Every view of what sacct printed, as CSV, facts and JSON."),
    (
        "gpuwaste analyze --view balance --month 2026-10 --html balance",
        "Where the GPU-hours of a month went, as a page.",
    ),
    ("gpuwaste analyze -S now-7days --compare previous", "What changed since the week before."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_window(parser, None, shown="now-30days; with files: no limit")
    parser.add_argument("--month", action=MonthAction, metavar="YYYY-MM", help="a calendar month, instead of -S and -E")
    source = parser.add_mutually_exclusive_group()
    add(source, "from", f"{DETECTED}; repeatable", dest="from_file", action="append")
    for name in ("sacct", "swf", "csv-file"):
        add(source, name, "repeatable", action="append")
    add(source, "store")
    parser.add_argument(
        "--into",
        type=path_word,
        metavar="FILE",
        help="keep the jobs imported from files in this store, for later commands",
    )
    add(parser, "mapping")
    parser.add_argument(
        "--format", default="", metavar="COLUMNS", help="with --sacct: columns of a file without a header"
    )
    add(parser, "delimiter", default="|")
    add(parser, "time-zone", default="", shown="this host's")
    parser.add_argument(
        "--machine",
        type=path_word,
        action="append",
        metavar="FILE",
        help="with files: nodes and partitions (slurm.conf, its directory, TOML), or what sacctmgr -P show event, "
        "sacctmgr -P show reservation or scontrol show reservation printed (repeatable)",
    )
    add(parser, "clusters", "several separated by commas", default="", shown="all")
    parser.add_argument("--view", action="append", metavar="NAME", help="only this view (repeatable; default: all)")
    parser.add_argument(
        "--compare",
        metavar="WHAT",
        help="compare with: previous (as long, just before), START,END, or clusters (the two of -M)",
    )
    parser.add_argument(
        "-o", "--output", type=path_word, metavar="DIR", help="write VIEW.csv, VIEW.facts.json and VIEW.json there"
    )
    parser.add_argument(
        "--html", type=path_word, metavar="DIR", help="write the views as pages that open from disk, with CSV and SVG"
    )
    form = parser.add_mutually_exclusive_group()
    for name in ("json", "parsable"):
        add(form, name, action="store_const", dest="form", const=name)
    add(parser, "noheader")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Make the views and print or write them."""
    from gpuwaste.cli.analysis import as_json, found, printed, write, write_pages

    whole = []
    for name, document in found(options, config_of(options)):
        if options.output is not None:
            for file in write(options.output, name, document):
                sys.stdout.write(f"{file}\n")
        if options.html is not None:
            whole.append((name, document))
        elif options.output is not None:
            continue
        elif options.form == "json":
            whole.append((name, document))
        else:
            sys.stdout.write(printed(document, options))
    if options.html is not None:
        sys.stdout.write(f"{write_pages(options.html, whole)}\n")
    elif whole:
        sys.stdout.write(as_json(whole))
    return 0
