"""Brings the machines from nothing to a site: started, with Slurm, with our packages; says how long each part took."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools.field.net import cluster, roles
from tools.field.net.hosts import Hosts, started
from tools.matrix.table import say


@contextmanager
def site(name: str, lowers: Sequence[Path], packages: Path) -> Iterator[Hosts]:
    """Yield the three hosts at work; end them afterwards. Raises GpuwasteError."""
    began = time.monotonic()
    with started(name, lowers, packages) as hosts:
        say(f"{time.monotonic() - began:6.1f} s  three machines")
        _timed("users, simulated driver, clock", hosts.furnish)
        _timed("Slurm on three hosts", lambda: cluster.start(hosts))
        _timed("install page, by role", lambda: roles.install_all(hosts))
        roles.hurry(hosts)
        yield hosts


def _timed(what: str, part: Callable[[], None]) -> None:
    began = time.monotonic()
    part()
    say(f"{time.monotonic() - began:6.1f} s  {what}")
