"""Standby: a hub that waits for its lake answers reads meanwhile, and accepts batches for the hub that serves.

It is a hub without its threads around a store that cannot be written. Each read uses the lake's newest snapshot;
thresholds are read every few seconds. Nothing here keeps the hub from taking the lake, also where PostgreSQL or
a Slurm command hangs.
"""

import contextlib
import gc
import threading
from collections.abc import Callable
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.repeat_suppressor import RepeatSuppressor
from gpuwaste.core.worker import Worker
from gpuwaste.hub.hub import Hub
from gpuwaste.hub.hub_ports import HubPorts
from gpuwaste.hub.inbox_room import InboxRoom
from gpuwaste.hub.server import HubSockets, WebServer
from gpuwaste.hub.sign_in.visitors import Visitors
from gpuwaste.hub.standby_gate import StandbyGate
from gpuwaste.hub.store_choice import open_reader
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.ledger.curves.curve_service import Curves
from gpuwaste.ledger.judging import Judging
from gpuwaste.net.batch import MAX_BATCH_BYTES
from gpuwaste.store.hub.lake_store import LakeReader
from gpuwaste.store.lake_database import LakeLocation

_LOOK_S: Final = 2.0
_RETRY_S: Final = 10.0
_DRAIN_S: Final = 2  # for reads in flight when the hub takes the lake: agents wait
_STOP_S: Final = 1.0  # for a thread that may hang
_READS: Final = log_event.info("hub-answers-reads: this hub is a standby and answers reads of the lake on {places}")
_CANNOT: Final = log_event.warning(
    "hub-cannot-read: this hub is a standby and answers no reads, retry in {seconds:.0f} s: {error}",
    "PostgreSQL or Slurm does not answer, or hubs of two versions run on one lake. This hub still takes over"
    " when the active hub stops.",
)


class Standby:
    """Opens the lake to read, and serves: `worker` does it, until another thread calls `end`."""

    def __init__(
        self, config: Config, ports: HubPorts, location: LakeLocation, sockets: Callable[[], HubSockets]
    ) -> None:
        """`sockets` opens the hub's sockets, or returns the open ones."""
        self._config = config
        self._ports = ports
        self._location = location
        self._sockets = sockets
        self._gate = StandbyGate(MAX_BATCH_BYTES)
        self._trouble = RepeatSuppressor()
        self._lock = threading.Lock()
        self._over = False
        self._reading: _Reading | None = None
        self._server: _StandbyServer | None = None
        self.worker = Worker("standby", self.look, ports.clock)

    def look(self) -> float:
        """Answer reads if the lake can be read, and none if it cannot; returns the seconds to wait.

        The port opens with the first read that can be answered. Raises nothing that the lake, Slurm or the
        configuration can cause.
        """
        try:
            if self._reading is None:
                self._begin()
            if self._reading is not None:
                self._reading.refresh()
        except GpuwasteError as error:
            self._close()
            if not self._over and self._trouble.news(str(error)):
                _CANNOT.log(error=error, seconds=_RETRY_S)
            return _RETRY_S
        self._trouble.over()
        return _LOOK_S

    def end(self) -> None:
        """Stop for good; the sockets continue to listen. A thread that hangs is abandoned, and begins nothing."""
        self.worker.end()
        with self._lock:
            self._over = True
        if self._server is not None:
            self._server.end()
        self._close()
        self.worker.stop(_STOP_S)
        gc.collect()  # a complete hub, with its cached answers: the one that runs next needs the memory

    def _begin(self) -> None:
        """Open the lake and serve it, unless `end` was called meanwhile. Raises GpuwasteError."""
        with contextlib.ExitStack() as ends:
            store = open_reader(self._location, self._config.hub, self._ports.clock)
            ends.callback(store.close)
            inbox = InboxRoom(self._location, store, self._ports.clock)
            ends.callback(inbox.close)
            hub = Hub(self._config, self._ports, store, inbox)
            hub.get(ClusterFacts).cluster()  # documents have its name, and nothing else requests it here
            with self._lock:
                if not self._over:
                    self._serve(_Reading(hub, store, inbox))
                    ends.pop_all()
        if self._reading is not None:
            _READS.log(places=self._sockets().places)

    def _serve(self, reading: "_Reading") -> None:
        self._reading = reading
        self._gate.takes, self._gate.app = reading.takes, reading.app
        if self._server is None:
            self._server = _StandbyServer(self._gate, self._sockets().copies())

    def _close(self) -> None:
        with self._lock:
            reading, self._reading, self._gate.app = self._reading, None, None
        if reading is not None:
            reading.close()


class _Reading:
    """A hub without threads around a lake that it only reads, and the lake's inbox."""

    def __init__(self, hub: Hub, store: LakeReader, inbox: InboxRoom) -> None:
        self.app = hub.app
        self._hub = hub
        self._store = store
        self._inbox = inbox

    def takes(self) -> bool:
        """Return whether batches are taken."""
        return self._inbox.takes

    def refresh(self) -> None:
        """Use the thresholds that are stored in the lake. Raises StoreError where the lake cannot be read any more."""
        self._store.check_version()
        self._inbox.look()
        self._hub.get(Judging).follow()

    def close(self) -> None:
        """Close the lake; a read that still runs fails or ends on its own."""
        self._hub.get(Curves).close()
        self._hub.get(Visitors).close()
        self._inbox.close()
        self._store.close()


class _StandbyServer:
    """The web server of a hub that stands by, on a thread of its own."""

    def __init__(self, gate: StandbyGate, sockets: HubSockets) -> None:
        self._server = WebServer(gate, sockets.tcp, sockets.unix, sockets.tls, drain_s=_DRAIN_S)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"signals": False}, name="standby server", daemon=True
        )
        self._thread.start()

    def end(self) -> None:
        """Take no more connections; a read that takes longer than the drain is not waited for."""
        self._server.stop()
        self._thread.join(_DRAIN_S + _STOP_S)
