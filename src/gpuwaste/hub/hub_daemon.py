"""`gpuwaste hub`: assembles the parts, runs them, and ends them in order."""

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from gpuwaste.core import log_event
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.version import own_version
from gpuwaste.hub.hub import Hub
from gpuwaste.hub.hub_ports import HubPorts, agent_uid
from gpuwaste.hub.lake_holder import lake_holder
from gpuwaste.hub.server import HubSockets, WebServer, make_room
from gpuwaste.hub.standby import Standby
from gpuwaste.hub.store_choice import lake_location
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.ledger.rollup import FIRST_S
from gpuwaste.net.munge_credentials import Munge, MungeChecker, MungeIssuer
from gpuwaste.net.request_signing import Checkers, CredentialChecker, CredentialIssuer, Via
from gpuwaste.net.systemd_notifier import SILENT, SystemdNotifier
from gpuwaste.net.tokens import TokenChecker
from gpuwaste.slurm.clients.client_choice import accounting_client

_PATIENCE_S: Final = 2.0  # at the end, for a thread that waits for a Slurm command
_STARTED: Final = log_event.info("hub-started: gpuwaste hub {version} listens on {places}, store {store}")
_STOPPED: Final = log_event.info("hub-stopped: hub has stopped")
_GIVEN_UP: Final = log_event.error(
    "store-given-up: DuckDB rejects the store until it is opened again, this hub stops: {reason}",
    "The service starts again and has all that was committed. Free space if the disk is full; otherwise it is a bug"
    " of DuckDB: please report the line.",
)
_M_ARENA_MAX: Final = -8  # mallopt(3), glibc's malloc.h
_ARENAS: Final = 2
_YOUNG: Final = 20_000  # more objects than at the last collection; Python says 700
_OLDER: Final = 20


def run_hub(config: Config, path: Path | None = None) -> int:
    """Run the hub until a signal; returns the exit code. Raises ConfigError, StoreError.

    `path` is the configuration file that SIGHUP reads again, None for the default one.
    """
    set_up_logging()
    os.umask(UMASK)
    make_room()
    use_few_arenas()
    closed_directory(Path(config.hub.state_dir), "[hub] state_dir")
    notifier = SystemdNotifier.from_environment()
    slurm, clock = accounting_client(config), SystemClock()
    location = lake_location(config.hub)
    holder = None if location is None else lake_holder(location, clock)
    # until the server handles signals; a hub that has lost its lake is to be started again
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(holder is not None and holder.lost)))
    signal.signal(signal.SIGHUP, lambda *_: None)  # what the signal requests is about to be done
    checkers = make_checkers(config)
    ports = HubPorts(slurm, clock, checkers, agents=agent_issuer(config, checkers))
    sockets = cache(lambda: HubSockets.open(config.hub))
    if holder is None or location is None:
        return _run(config, path, ports, sockets, notifier)
    with holder.held(notifier, Standby(config, ports, location, sockets)):
        code = _run(config, path, ports, sockets, notifier)
    return int(holder.lost) or code


def _run(
    config: Config, path: Path | None, ports: HubPorts, sockets: Callable[[], HubSockets], notifier: SystemdNotifier
) -> int:
    hub = Hub(config, ports)
    signal.signal(signal.SIGHUP, hub.reloader(lambda: load_config(path)).in_thread)
    places = sockets().places
    collect_seldom()
    _STARTED.log(version=own_version(), places=places, store=config.hub.state_dir)
    code = serve(hub, sockets(), notifier)
    _STOPPED.log()
    return code


def serve(hub: Hub, sockets: HubSockets, notifier: SystemdNotifier = SILENT) -> int:
    """Serve until SIGTERM or SIGINT, or until DuckDB invalidates the store; the store is closed at the end.

    A watchdog beat needs both: the event loop that answers, and the importer's thread. Returns the exit code.
    """

    def beat() -> None:
        if hub.store.given_up:
            server.stop()
        elif hub.get(Importer).worker.alive:
            notifier.alive()

    parts = hub.parts.all()
    workers = [worker for part in parts for worker in part.workers]
    config = hub.config.hub
    server = WebServer(
        hub.app, sockets.tcp, sockets.unix, sockets.tls,
        serves=lambda: notifier.ready(f"store {config.state_dir}"),
        beat=beat,
    )  # fmt: skip
    try:
        hub.parts.start(FIRST_S)
        server.run()
    finally:
        notifier.stopping()
        for worker in workers:
            worker.end()
        for part in parts:
            part.close()
        for worker in workers:
            # A Slurm command may hang; a write after the close fails, and is done again at the next start.
            worker.stop(_PATIENCE_S)
        hub.store.close()
    if hub.store.given_up:
        _GIVEN_UP.log(reason=hub.store.given_up)
    return int(bool(hub.store.given_up))


def make_checkers(config: Config) -> dict[Via, CredentialChecker]:
    """Return how callers authenticate: munge, unless the site has token files only; tokens where configured."""
    checkers: dict[Via, CredentialChecker] = {}
    if config.hub.node_tokens_file:
        checkers["token"] = TokenChecker(Path(config.hub.node_tokens_file))
    if not config.common.token_file:
        checkers["munge"] = MungeChecker(Munge(config.common.munge_socket))
    return checkers


def agent_issuer(config: Config, checkers: Checkers) -> CredentialIssuer | None:
    """Return how the hub authenticates to agents from which it requests samples; None where it requests none.

    Raises ConfigError where the site has no munge: an agent could use a token that it receives.
    """
    if not config.hub.agent_url:
        return None
    if "munge" not in checkers:
        raise ConfigError("[hub] agent_url needs munge: without it, set prometheus_url instead")
    return MungeIssuer(Munge(config.common.munge_socket), agent_uid(config.hub.agent_user, checkers))


def use_few_arenas() -> None:
    """Let threads share their heaps; call it before there are threads.

    glibc gives threads up to eight heaps for each processor, and what a thread frees stays in its own: with a thousand
    agents that is some hundred megabytes that nobody uses. Other C libraries have no such heaps: nothing is done.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def collect_seldom() -> None:
    """Exclude existing objects from garbage collection, and check new ones seldom.

    What was imported lives as long as the process. A report's objects live until it is sent and have no cycles: to
    check all of them with every 700 more takes a tenth of its time, and finds nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _OLDER, _OLDER)
