"""Run the hub in the foreground (what the systemd unit runs); back up, restore or move its store; erase a user."""

import argparse
import sys

from gpuwaste.cli.options import add, add_config, config_of
from gpuwaste.cli.words import path_word

HELP = "the hub: run, backup, restore, move, erase"
EXAMPLES = (
    ("gpuwaste hub run", "Serve, in the foreground."),
    ("gpuwaste hub backup /srv/backup/gpuwaste.tar", "Write the store of the running hub to that file."),
    ("gpuwaste hub restore /srv/backup/gpuwaste.tar", "Restore it, with the hub stopped."),
    ("gpuwaste hub move --to lake", "Move the store from its file to the lake; see docs/how-to/lake.md."),
    ("gpuwaste hub erase alice --dry-run", "Count the rows that name a user; the hub must be stopped."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_config(actions.add_parser("run", help="run in the foreground until SIGTERM; SIGHUP reloads the configuration"))
    backup = actions.add_parser("backup", help="write the store of the running hub to a file")
    backup.add_argument("target", type=path_word, metavar="FILE", help="new file, or a directory for one")
    backup.add_argument("--force", action="store_true", help="replace an existing file")
    restore = actions.add_parser("restore", help="replace the store with a backup; stop the hub first")
    restore.add_argument("source", type=path_word, metavar="FILE", help="file that gpuwaste hub backup wrote")
    restore.add_argument("--sha256", default="", metavar="SUM", help="restore only if the file has this SHA-256")
    restore.add_argument(
        "--force", action="store_true", help="replace an existing store; the old one is kept next to it"
    )
    moved = actions.add_parser("move", help="move the store from its file to a lake, or from a lake to a file")
    where = moved.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--to",
        choices=("lake", "file"),
        metavar="lake|file",
        help="new store; run the command again with the hub stopped",
    )
    where.add_argument("--reopen", action="store_true", help="use the old store again, in its state before the move")
    moved.add_argument(
        "--force", action="store_true", help="with --to file: replace an existing file; the old one is kept next to it"
    )
    erased = actions.add_parser("erase", help="erase a user's name and texts from the store; stop the hub first")
    erased.add_argument("user", metavar="USER", help="user name as in Slurm's accounting")
    erased.add_argument("--dry-run", action="store_true", help="count the rows; change nothing")
    for action in (backup, restore, moved, erased):
        add(action, "json")
        add_config(action)


def run(options: argparse.Namespace) -> int:
    """Run the daemon, or do the action and print the result."""
    if options.action == "run":
        from gpuwaste.cli.programs import load_daemon

        code: int = load_daemon("gpuwaste.hub.hub_daemon").run_hub(config_of(options), options.config)
        return code
    import json

    from gpuwaste.cli.hub_copies import back_up, backup_text, put_back, restore_text

    config = config_of(options)
    if options.action == "move":
        from gpuwaste.cli.hub_copies import move, move_text, reopen

        document = reopen(config) if options.reopen else move(config, options.to, force=options.force)
        text = move_text(document, options.config)
    elif options.action == "erase":
        from gpuwaste.cli.hub_erase import erase, erase_text

        document = erase(config, options.user, dry_run=options.dry_run)
        text = erase_text(document)
    elif options.action == "backup":
        document = back_up(config, options.target, force=options.force)
        text = backup_text(document)
    else:
        document = put_back(config, options.source, options.sha256, force=options.force)
        text = restore_text(document)
    sys.stdout.write(json.dumps(document, indent=1) + "\n" if options.json else text)
    return 0
