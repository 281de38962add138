"""Standby: a hub that waits for its lake answers reads meanwhile, from what the hub that serves has committed.

It is a hub without its threads around a store that cannot be written. Each read is of the lake's newest snapshot;
thresholds are looked up every few seconds.
"""

import gc
import threading
from collections.abc import Callable
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, GpuwasteError
from gpuwaste.core.once import Once
from gpuwaste.hub.hub_sockets import HubSockets
from gpuwaste.hub.parts import Hub
from gpuwaste.hub.ports import HubPorts
from gpuwaste.hub.server import WebServer
from gpuwaste.hub.standby_gate import StandbyGate
from gpuwaste.hub.store_choice import open_reader
from gpuwaste.store.hub.lake_store import LakeReader
from gpuwaste.store.lake_database import LakeLocation

_RETRY_S: Final = 10
_DRAIN_S: Final = 2  # for reads in flight when the hub takes the lake: agents wait
_STOP_S: Final = 5.0
_READS: Final = log_event.info("hub-answers-reads: this hub stands by and answers reads of the lake on {places}")
_CANNOT: Final = log_event.warning(
    "hub-cannot-read: this hub stands by and answers no reads, retry in {seconds} s: {error}",
    "PostgreSQL or Slurm does not answer, or hubs of two versions run on one lake. The hub takes the lake over all the"
    " same when the hub that serves ends.",
)


class Standby:
    """Opens the lake to read, serves, and leaves off; for one thread."""

    def __init__(
        self, config: Config, ports: HubPorts, location: LakeLocation, sockets: Callable[[], HubSockets]
    ) -> None:
        """`sockets` opens the hub's sockets, or returns them where they are open."""
        self._config = config
        self._ports = ports
        self._location = location
        self._sockets = sockets
        self._trouble = Once()
        self._retry_us = 0
        self._reads: _Reads | None = None

    def look(self) -> None:
        """Answer reads if the lake can be read, and leave off if it cannot be read any more. Raises ConfigError."""
        if self._ports.clock.mono_us() < self._retry_us:
            return
        try:
            if self._reads is None:
                self._reads = self._begin()
            self._reads.refresh()
        except ConfigError:
            raise
        except GpuwasteError as error:
            self.end()
            self._retry_us = self._ports.clock.mono_us() + _RETRY_S * 1_000_000
            if self._trouble.news(str(error)):
                _CANNOT.log(error=error, seconds=_RETRY_S)
        else:
            self._trouble.over()

    def end(self) -> None:
        """Leave off, if reads are answered; the sockets go on to listen."""
        reads, self._reads = self._reads, None
        if reads is not None:
            reads.end()
            del reads
            gc.collect()  # a whole hub, with its kept answers: the one that runs next needs the room

    def _begin(self) -> "_Reads":
        store = open_reader(self._location, self._config.hub, self._ports.clock)
        try:
            hub = Hub(self._config, self._ports, store)
            hub.site.cluster()  # documents have its name, and nobody else asks for it here
            reads = _Reads(hub, store, self._sockets())
        except BaseException:
            store.close()
            raise
        _READS.log(places=self._sockets().places)
        return reads


class _Reads:
    """A hub without threads of its own that answers reads."""

    def __init__(self, hub: Hub, store: LakeReader, sockets: HubSockets) -> None:
        self._hub = hub
        self._store = store
        gate, copies = StandbyGate(hub.app, hub.config.hub.max_body_bytes), sockets.copies()
        self._server = WebServer(gate, copies.tcp, copies.unix, copies.tls, drain_s=_DRAIN_S)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"signals": False}, name="standby reads", daemon=True
        )
        self._thread.start()

    def refresh(self) -> None:
        """Use the thresholds that stand in the lake. Raises StoreError where the lake cannot be read any more."""
        self._store.check_version()
        self._hub.judging.follow()

    def end(self) -> None:
        """Stop the server. A read that goes on longer than the drain ends on its own, and nobody waits for it."""
        self._server.stop()
        self._thread.join(_DRAIN_S + _STOP_S)
        self._hub.curves.close()
        self._store.close()
