"""Print a link that signs you in to the hub's pages: open it in a browser within a minute; it works once."""

import argparse
import sys

from gpuwaste.cli.options import add_config, config_of

HELP = "a link that signs you in to the hub's pages in a browser"
EXAMPLES = (("gpuwaste web", "Open the printed link in a browser within a minute."),)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Have the hub make a link and print it."""
    from gpuwaste.cli.hub_access import hub_client, url_of
    from gpuwaste.net.hub_client import LINK_PATH

    url, expires_s = url_of(hub_client(config_of(options)).post(LINK_PATH, {}))
    sys.stderr.write(f"Open this link in a browser within {expires_s} s; it works once and signs in as you.\n")
    sys.stdout.write(f"{url}\n")
    return 0
