"""A lake without a hub for as long as a command works with it: the command holds the lease, as a hub would."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Final

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.worker import Worker
from gpuwaste.store.lake_catalog import LEASE_S, LakeLease
from gpuwaste.store.lake_database import LakeLocation

_COMMAND: Final = "gpuwaste "  # how names of commands begin; those of hubs begin with a host
_PROLONG_S: Final = LEASE_S / 4
_LOOK_S: Final = 1.0


@contextmanager
def lake_without_hubs(location: LakeLocation, command: str) -> Iterator[str]:
    """Keep hubs from a lake while `command` works with it; gives "", or the holder, and then the lake stays as it is.

    The lease of a killed command is waited for. If a hub takes the lake over nevertheless, the fence prevents harm.
    Raises StoreError where PostgreSQL does not answer, or another command works with the lake.
    """
    # A unique name: a host, a process, an instant.
    name = f"{command} on {socket.gethostname()}, process {os.getpid()}, {time.time_ns()}"
    with closing(LakeLease(location.catalog, name)) as lease:
        holder = _taken(lease)
        if holder != lease.holder:
            yield holder
            return
        try:
            with _prolonged(lease):
                yield ""
        finally:
            with suppress(StoreError):  # the lease expires then
                lease.give_up()


def _taken(lease: LakeLease) -> str:
    """Take the lease, unless a hub holds it; return that hub then. Raises StoreError."""
    until = time.monotonic() + LEASE_S + _LOOK_S
    while (holder := lease.take()).startswith(_COMMAND) and holder != lease.holder:
        if time.monotonic() > until:
            raise StoreError(f"another command uses this lake: {holder}")
        time.sleep(_LOOK_S)
    return holder


@contextmanager
def _prolonged(lease: LakeLease) -> Iterator[None]:
    """Keep hubs that stand by waiting."""

    def prolong() -> float:
        with suppress(StoreError):
            lease.take()
        return _PROLONG_S

    worker = Worker("lake lease", prolong, SystemClock())
    worker.start(_PROLONG_S)
    try:
        yield
    finally:
        worker.stop()
