"""Look at a cluster before anything is installed: reads accounting as any user, writes only into the named folder.

On a login node it runs sacct, one day after the other, the newest first; elsewhere it reads a file of sacct, or the
folder of an earlier look. It needs no hub, no configuration and no root.
"""

import argparse

from gpuwaste.cli.options import add, add_window
from gpuwaste.cli.words import path_word

HELP = "what accounting knows of this cluster, before anything is installed"
EXAMPLES = (
    ("gpuwaste look", "The last 30 days of this cluster, into gpuwaste-look."),
    ("gpuwaste look -o may -S 2026-05-01 -E 2026-06-01", "One month, into the folder may."),
    ("gpuwaste look --from jobs.txt.gz -o pages", "A file that sacct -P wrote, on any host."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-o", "--output", type=path_word, metavar="DIR", help="folder for everything (default: gpuwaste-look)"
    )
    about = "of sacct -P or --json, or the folder of an earlier look, instead of running Slurm's commands"
    add(parser, "from", about, dest="from_file")
    add_window(parser, None, shown="now-30days; of a file: all its jobs")
    add(parser, "clusters", "of a file without the column Cluster", default="", shown="cluster")
    add(parser, "time-zone", "of a file", default="", shown="this host's")
    parser.add_argument(
        "--machine",
        type=path_word,
        action="append",
        metavar="FILE",
        help="with a file: the machine, as gpuwaste analyze --machine reads it (repeatable; default: what jobs held)",
    )
    parser.add_argument(
        "--time-limit",
        default="5m",
        metavar="TIME",
        help="stop reading accounting after this time: 120s, 5m, 1h (default: 5m)",
    )


def run(options: argparse.Namespace) -> int:
    """Read, write the folder, print the text."""
    import sys

    from gpuwaste.cli.looking import looked

    sys.stdout.write(looked(options))
    return 0
