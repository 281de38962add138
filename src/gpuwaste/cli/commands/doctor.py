"""Check what gpuwaste needs on this host: one line each, ok, warn or fail, with how to mend it."""

import argparse
import sys

from gpuwaste.cli.options import add_config, config_of

HELP = "check what gpuwaste needs on this host"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_config(parser)


def run(options: argparse.Namespace) -> int:
    """Print a line for each check; exit with 1 where one fails."""
    from gpuwaste.cli.checks import Status, Surroundings, run_checks, user_name
    from gpuwaste.cli.hub_access import ask_hub
    from gpuwaste.core.config import DEFAULT_PATH
    from gpuwaste.slurm.commands import CommandClient

    config = config_of(options)
    slurm = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s)
    failed = False
    for check in run_checks(Surroundings(config, options.config or DEFAULT_PATH, slurm, ask_hub, user_name())):
        failed = failed or check.status is Status.FAIL
        mend = f": {check.mend}" if check.mend else ""
        sys.stdout.write(f"{check.status:<5}{check.name:<9}{check.found}{mend}\n")
    return 1 if failed else 0
