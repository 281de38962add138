"""Stop or resume the digests and notices of time limits that are mailed to you."""

import argparse
import sys

from gpuwaste.cli.options import add_config, config_of

HELP = "mails to you about idle GPU time and time limits: on, off"
EXAMPLES = (
    ("gpuwaste notify off", "No more digests, and no more notices of time limits."),
    ("gpuwaste notify on", "Send them again."),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("mail", choices=("on", "off"), help="on: send me mails; off: send me none")
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Send the wish to the hub and print it."""
    from gpuwaste.cli.hub_access import hub_client
    from gpuwaste.core.text import harmless

    mail = options.mail == "on"
    answer = hub_client(config_of(options)).post("/v1/notices/wish", {"mail": mail})
    words = "are sent again" if mail else "are no longer sent"
    sys.stdout.write(f"{harmless(str(answer['user']))}: digests and notices of time limits {words}\n")
    return 0
