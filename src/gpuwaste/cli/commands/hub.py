"""Run the hub in the foreground, as its unit does; back it up while it runs, put a backup in its place."""

import argparse
import json
import sys
from pathlib import Path

from gpuwaste.cli.options import add_config, config_of

HELP = "the hub: run, backup, restore"
EXAMPLES = (
    ("gpuwaste hub run", "Serve, in the foreground."),
    ("gpuwaste hub backup /srv/backup/gpuwaste.tar", "Write all that the running hub keeps to that file."),
    ("gpuwaste hub restore /srv/backup/gpuwaste.tar", "Put it back, with the hub stopped."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_config(
        actions.add_parser("run", help="run in the foreground until SIGTERM; SIGHUP reads the configuration again")
    )
    backup = actions.add_parser("backup", help="write the store of the running hub to a file, as of now")
    backup.add_argument("target", type=Path, metavar="FILE", help="a new file, or a directory to make one in")
    backup.add_argument("--force", action="store_true", help="replace a file that is there")
    restore = actions.add_parser("restore", help="put a backup in the place of the store; the hub is stopped")
    restore.add_argument("source", type=Path, metavar="FILE", help="what `gpuwaste hub backup` wrote")
    restore.add_argument("--sha256", default="", metavar="SUM", help="refuse the file unless this is its SHA-256")
    restore.add_argument("--force", action="store_true", help="replace the store that is there; it is kept beside")
    for action in (backup, restore):
        action.add_argument("--json", action="store_true", help="one JSON document")
        add_config(action)


def run(options: argparse.Namespace) -> int:
    """Hand over to the daemon, or do the action and print what came of it."""
    if options.action == "run":
        from gpuwaste.cli.programs import load_program

        code: int = load_program("gpuwaste.hub.daemon").run_hub(config_of(options), options.config)
        return code
    from gpuwaste.cli.hub_backup import back_up, backup_text, put_back, restore_text

    config = config_of(options)
    if options.action == "backup":
        document = back_up(config, options.target, force=options.force)
        text = backup_text(document)
    else:
        document = put_back(config, options.source, options.sha256, force=options.force)
        text = restore_text(document)
    sys.stdout.write(json.dumps(document, indent=1) + "\n" if options.json else text)
    return 0
