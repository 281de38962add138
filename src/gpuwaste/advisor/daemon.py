"""`gpuwaste advisor`: puts the parts together, warms them up, listens, and ends them in order."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gpuwaste.advice.policy.loading import load_policies
from gpuwaste.advisor.listening import open_listener, refuse_living, remove_socket
from gpuwaste.advisor.parts import AdvisorParts
from gpuwaste.advisor.slurm_facts import allowed_uids, cluster_of
from gpuwaste.advisor.warm import prefer_answers, warm
from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.reload import Reloader
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.net.notify import SILENT, SystemdNotifier
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.clients.commands import CommandClient

_STARTED: Final = log_event.info("advisor-started: gpuwaste advisor {version} listens on {path} for uids {uids}")
_STOPS: Final = log_event.info("advisor-stops: advisor is stopping")
_STOPPED: Final = log_event.info("advisor-stopped: advisor has stopped")
_POLICIES_REJECTED: Final = log_event.error(
    "policies-not-reloaded: cannot reload policies, the loaded ones stay in force: {error}",
    "`gpuwaste policy check` prints the same error: fix the file, then reload.",
)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run_advisor(config: Config, path: Path | None = None) -> int:
    """Run the advisor until a signal; returns the exit code. Raises GpuwasteError where it cannot start.

    `path` is the configuration file that SIGHUP reads again, None for the default one.
    """
    set_up_logging()
    notifier = SystemdNotifier.from_environment()
    stop = threading.Event()
    for number in _SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: None)  # the policies are about to be read
    os.umask(UMASK)
    closed_directory(Path(config.advisor.state_dir), "[advisor] state_dir")
    closed_directory(Path(config.advisor.socket).parent, "[advisor] socket", 0o755)
    slurm, clock = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s), SystemClock()
    refuse_living(Path(config.advisor.socket))  # before minutes are spent on the history
    cluster = cluster_of(config, slurm, clock, stop, waiting=notifier.starting)
    if stop.is_set():
        return 0
    return Advisor(config, cluster, slurm, clock, notifier=notifier, read=lambda: load_config(path)).run(stop)


class Advisor:
    """One advisor; `run` serves until `stop` is set or a signal comes."""

    def __init__(
        self,
        config: Config,
        cluster: str,
        slurm: SlurmClient,
        clock: Clock,
        *,
        notifier: SystemdNotifier = SILENT,
        read: Callable[[], Config] = load_config,
    ) -> None:
        self._policies_dir = Path(config.advisor.policies_dir)
        self._notifier = notifier
        self._path = Path(config.advisor.socket)
        self._allowed = allowed_uids(config, slurm)
        self._parts = AdvisorParts(config, cluster, slurm, daemon_client(config), clock)
        self._reloader = Reloader(
            config,
            read,
            ("common", "advisor"),
            {
                ("advisor.policies_dir",): lambda c: setattr(self, "_policies_dir", Path(c.advisor.policies_dir)),
                ("advisor.max_queue", "advisor.stale_s"): lambda c: self._parts.use_limits(c.advisor),
            },
        )

    def run(self, stop: threading.Event) -> int:
        """Warm up, listen, serve; returns the exit code. Raises ConfigError where it cannot listen."""
        parts = self._parts
        listener = None
        try:
            warm(parts.judge.adviser)
            prefer_answers()
            listener = open_listener(self._path)
            server = parts.server(listener, self._allowed)
            for number in _SIGNALS:
                signal.signal(number, lambda *_: server.stop())
            signal.signal(signal.SIGHUP, lambda *_: self.reload())
            if stop.is_set():
                return 0
            parts.start()
            uids = ", ".join(map(str, sorted(self._allowed)))
            _STARTED.log(version=parts.version, path=self._path, uids=uids)
            server.each_turn(self._notifier.alive)
            server.call(lambda: self._notifier.ready(f"answers on {self._path}"))
            server.run()
            self._notifier.stopping()
            _STOPS.log()
        finally:
            if listener is not None:
                remove_socket(self._path, listener)
            parts.stop()
        _STOPPED.log()
        return 0

    def reload(self) -> None:
        """Read configuration and policies again, on a thread; what is in force stays where the new cannot be used."""
        threading.Thread(target=self._reload, name="reload", daemon=True).start()

    def _reload(self) -> None:
        self._notifier.reloading()
        self._reloader.reload()
        try:
            policies = load_policies(self._policies_dir)
        except GpuwasteError as error:
            _POLICIES_REJECTED.log(error=error)
        else:
            self._parts.use_policies(policies)
        self._notifier.ready(f"answers on {self._path}")
