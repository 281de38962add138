"""Run the actor in the foreground (what the systemd unit runs)."""

import argparse

from gpuwaste.cli.options import add_config, config_of

HELP = "run the actor, which takes approved actions in Slurm"
EXAMPLES = (("gpuwaste actor run", "Take actions, in the foreground."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_config(actions.add_parser("run", help="run in the foreground until SIGTERM"))


def run(options: argparse.Namespace) -> int:
    """Hand over to the daemon."""
    from gpuwaste.cli.programs import load_daemon

    daemon = load_daemon("gpuwaste.actor.actor_daemon", "agent", "the actor's host")
    code: int = daemon.run_actor(config_of(options))
    return code
