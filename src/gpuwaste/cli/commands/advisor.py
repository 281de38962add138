"""Run the advisor in the foreground (what the systemd unit runs)."""

import argparse

from gpuwaste.cli.options import add_config, config_of

HELP = "run the advisor"
EXAMPLES = (("gpuwaste advisor run", "Answer the submit plugins, in the foreground."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_config(
        actions.add_parser("run", help="run in the foreground until SIGTERM; SIGHUP reloads configuration and policies")
    )


def run(options: argparse.Namespace) -> int:
    """Hand over to the daemon."""
    from gpuwaste.cli.programs import load_daemon

    daemon = load_daemon("gpuwaste.advisor.advisor_daemon", "predict", "slurmctld's host")
    code: int = daemon.run_advisor(config_of(options), options.config)
    return code
