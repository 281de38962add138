"""Run the hub in the foreground, as its unit does."""

import argparse

from gpuwaste.cli.options import add_config, config_of

HELP = "the hub: run"
EXAMPLES = (("gpuwaste hub run", "Serve, in the foreground."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_config(
        actions.add_parser("run", help="run in the foreground until SIGTERM; SIGHUP reads the configuration again")
    )


def run(options: argparse.Namespace) -> int:
    """Hand over to the daemon."""
    from gpuwaste.cli.programs import load_program

    code: int = load_program("gpuwaste.hub.daemon").run_hub(config_of(options), options.config)
    return code
