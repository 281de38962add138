"""Write ended runs for another tool: Open XDMoD's job summaries, jobstats' text for AdminComment.

Nothing is sent or changed: the lines go to stdout.
"""

import argparse

from gpuwaste.cli.options import add, add_config, add_window

HELP = "runs in the format of Open XDMoD or jobstats"
EXAMPLES = (
    ("gpuwaste export xdmod -a -S yesterday -E today", "Open XDMoD's summaries of a day, for mongoimport (operators)."),
    ("gpuwaste export jobstats 4711", "What jobstats keeps in AdminComment, of one job."),
    ("gpuwaste export sacctmgr -a -S now-1day", "Commands that write it, for sh (administrators of Slurm)."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("format", metavar="FORMAT", help="format: jobstats, sacctmgr or xdmod")
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help="jobs as Slurm prints them (default: those that ended from -S to -E)"
    )
    whom = parser.add_mutually_exclusive_group()
    add(whom, "user", shown="yours")
    add(whom, "accounts")
    add(whom, "allusers")
    add(parser, "clusters", "jobs of all its users; with ID, the job of this cluster", shown="every cluster of the hub")
    add_window(parser, None, shown="now-1day")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Query the hub and write the lines."""
    from gpuwaste.cli.exporting import export

    return export(options)
