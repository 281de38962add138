"""No daemon of any host logged a traceback, and Slurm's daemons no error of ours, in all that was done to them."""

from typing import Final

from tools.field.checks import logs
from tools.field.net.hosts import Hosts

NAME: Final = "logs without tracebacks"


def run(hosts: Hosts) -> None:
    """Read what the check of one machine reads, on each of them."""
    for lab in hosts.labs.values():
        logs.run(lab)
