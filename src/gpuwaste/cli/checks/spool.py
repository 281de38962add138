"""slurmd's spool directory, where the agent sees jobs start and end."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpuwaste.cli.check import Check, Role, Status, Surroundings

PLACE: Final = 55
NAME: Final = "spool"
ROLES: Final = frozenset({Role.AGENT})


def check(around: Surroundings) -> Iterator[Check]:
    """Check the directory that is configured, or that Slurm reports."""
    node = around.config.agent.node_name or around.host
    path = Path(around.config.agent.spool_dir or around.slurm.config().spool_dir(node, around.host))
    if not path.is_dir():
        yield Check(NAME, Status.WARN, f"{path} is not a directory", "on a GPU node: start slurmd, or set spool_dir")
    elif not os.access(path, os.R_OK | os.X_OK):
        yield Check(NAME, Status.WARN, f"{path} cannot be read", f"run as the agent's user, or chmod {path}")
    else:
        yield Check(NAME, Status.OK, str(path))
