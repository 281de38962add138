"""The assembled hub: the parts of every room around one store, and the application that serves them."""

import importlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from gpuwaste.core.config import Config
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.reload import Reloader
from gpuwaste.core.room_files import room_files
from gpuwaste.core.version import own_version
from gpuwaste.core.worker import Bus
from gpuwaste.hub.app import build_app
from gpuwaste.hub.backup import Backups
from gpuwaste.hub.exchange import Exchange
from gpuwaste.hub.hub_health import HubHealth
from gpuwaste.hub.hub_metrics import HubMetrics
from gpuwaste.hub.hub_ports import HubPorts, ServiceLimits
from gpuwaste.hub.inbox_parts import InboxParts
from gpuwaste.hub.inbox_room import InboxRoom
from gpuwaste.hub.mount import HubReading
from gpuwaste.hub.retention import TableRetention
from gpuwaste.hub.roles import Roles
from gpuwaste.hub.store_choice import open_store
from gpuwaste.net.metrics_server import ProgramCollector
from gpuwaste.store.hub.hub_store import HubStore

_T = TypeVar("_T")
_OWN: Final[tuple[type[Part], ...]] = (Roles, TableRetention, InboxParts, Backups, HubHealth)
_SECTIONS: Final = ("common", "hub", "web", "analytics", "models", "energy")


class Hub:
    """The hub's parts, assembled: no thread runs and nothing listens yet."""

    def __init__(
        self, config: Config, ports: HubPorts, store: HubStore | None = None, inbox: InboxRoom | None = None
    ) -> None:
        """Assemble the parts, around a store that another hub writes or else the hub's own, opened here.

        `inbox` receives batches that this hub takes for the other one.

        Raises ConfigError, StoreError.
        """
        self.config, self.clock = config, ports.clock
        self.store = store or open_store(config.hub, ports.clock)
        self.parts = Parts(config, ports, self.store, Bus(), *(() if inbox is None else (inbox,)))
        metrics = self.get(HubMetrics)
        metrics.registry.register(ProgramCollector(own_version(), self.clock.utc_us, Path(config.hub.state_dir)))
        kinds = tuple(_kinds())
        self.parts.declare(kinds)
        self.parts.make(kinds)
        self.exchange = Exchange(HubReading(self.parts), ports.limits or ServiceLimits())
        self.app = build_app(self.exchange, own_version())

    def get(self, kind: type[_T]) -> _T:
        """Return a part."""
        return self.parts.get(kind)

    def reloader(self, read: Callable[[], Config]) -> Reloader:
        """Return the reloader, which applies a changed configuration, as far as the parts can."""
        return Reloader(self.config, read, _SECTIONS, self.parts.reloads())


def _kinds() -> Iterator[type[Part]]:
    """Yield the parts of each room: PARTS of its file hub_parts.py, which needs no registration."""
    for file in room_files("*/hub_parts.py"):
        yield from importlib.import_module(f"gpuwaste.{file.parent.name}.hub_parts").PARTS
    yield from _OWN
