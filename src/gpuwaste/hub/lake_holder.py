"""LakeHolder: one of several hubs runs on a lake, the others stand by until its lease ends.

A hub that stands by answers reads and refers all else to the next hub of `hub_url`. A hub that has lost the lease
ends, and its supervisor starts it again, to stand by.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.errors import StoreError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Worker
from gpuwaste.hub.standby import Standby
from gpuwaste.net.systemd_notifier import SystemdNotifier
from gpuwaste.store.lake_catalog import LEASE_S, LakeLease
from gpuwaste.store.lake_database import LakeLocation

_LOOK_S: Final = 2.0
_PROLONG_S: Final = LEASE_S / 4
_STANDS_BY: Final = log_event.info("hub-stands-by: this hub is a standby: another hub runs on the lake: {holder}")
_TAKES: Final = log_event.info("hub-takes-lake: this hub runs on the lake now, as {holder}")
_LOST: Final = log_event.error(
    "hub-lost-lake: another hub runs on the lake now: {holder}; this hub stops",
    "Expected after this host was suspended, or cut off from PostgreSQL, for 15 s or more. The service restarts as a"
    " standby. If hubs take turns all the time, check the load of PostgreSQL.",
)
_UNKNOWN: Final = log_event.warning(
    "lake-lease-unknown: {error}",
    "PostgreSQL does not answer, so nothing can be stored. The hub continues by itself when it answers again.",
)


def lake_holder(location: LakeLocation, clock: Clock) -> "LakeHolder":
    """Return what makes this process the one hub of its lake."""
    # A unique name: a host, a process, an instant.
    name = f"{socket.gethostname()} {os.getpid()}.{time.time_ns()}"
    return LakeHolder(LakeLease(location.catalog, name), clock)


class LakeHolder:
    """Takes the lease before a hub is made, and keeps it for as long as it runs."""

    def __init__(self, lease: LakeLease, clock: Clock) -> None:
        self._lease = lease
        self._trouble = RepeatSuppressor()
        self.lost = False
        self.worker = Worker("lake lease", self._prolong, clock)

    @contextmanager
    def held(self, notifier: SystemdNotifier, standby: Standby) -> Iterator[None]:
        """Wait for the lease, and renew it for the length of the block; SIGTERM is raised where another hub holds it.

        Meanwhile `standby` answers.
        """
        try:
            self._wait(notifier, standby)
            self.worker.start(_PROLONG_S)
        finally:
            standby.end()
        try:
            yield
        finally:
            self.worker.stop()
            self._give_up()

    def _wait(self, notifier: SystemdNotifier, standby: Standby) -> None:
        shown = ""
        while (holder := self._take()) != self._lease.holder:
            if holder and holder != shown:
                shown = holder
                _STANDS_BY.log(holder=holder)
            if not standby.worker.alive:
                standby.worker.start()
            notifier.ready(f"standby: {holder or 'the lake does not answer'}")
            notifier.alive()
            time.sleep(_LOOK_S)
        _TAKES.log(holder=self._lease.holder)

    def _give_up(self) -> None:
        if self.lost or self.worker.alive:
            return  # or the worker still waits for PostgreSQL: the lease expires
        try:
            self._lease.give_up()
        except StoreError as error:
            _UNKNOWN.log(error=error)

    def _take(self) -> str:
        try:
            holder = self._lease.take()
        except StoreError as error:
            if self._trouble.news(str(error)):
                _UNKNOWN.log(error=error)
            return ""
        self._trouble.over()
        return holder

    def _prolong(self) -> float | None:
        holder = self._take()
        if not holder or holder == self._lease.holder:
            return _PROLONG_S
        self.lost = True
        _LOST.log(holder=holder)
        signal.raise_signal(signal.SIGTERM)
        return None
