"""`gpuwaste advisor`: puts the parts together, warms them up, listens, and ends them in order."""

import logging
import signal
import sys
import threading
from pathlib import Path
from typing import Final

from gpuwaste.advisor.listening import open_listener, refuse_living, remove_socket
from gpuwaste.advisor.parts import Parts
from gpuwaste.advisor.site import allowed_uids, cluster_of, hub_client
from gpuwaste.advisor.warm import prefer_answers, warm
from gpuwaste.core.clock import Clock, SystemClock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.policy.loading import load_policies
from gpuwaste.slurm.client import SlurmClient
from gpuwaste.slurm.commands import CommandClient

_log = logging.getLogger(__name__)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def run_advisor(config: Config) -> int:
    """Run the advisor until a signal; returns the exit code. Raises GpuwasteError where it cannot start."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    stop = threading.Event()
    for number in _SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: None)  # the policies are about to be read
    slurm, clock = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s), SystemClock()
    refuse_living(Path(config.advisor.socket))  # before minutes are spent on the history
    cluster = cluster_of(config, slurm, clock, stop)
    if stop.is_set():
        return 0
    return Advisor(config, cluster, slurm, clock).run(stop)


class Advisor:
    """One advisor; `run` serves until `stop` is set or a signal comes."""

    def __init__(self, config: Config, cluster: str, slurm: SlurmClient, clock: Clock) -> None:
        self._config = config
        self._path = Path(config.advisor.socket)
        self._allowed = allowed_uids(config, slurm)
        self._parts = Parts(config, cluster, slurm, hub_client(config), clock)

    def run(self, stop: threading.Event) -> int:
        """Warm up, listen, serve; returns the exit code. Raises ConfigError where it cannot listen."""
        parts = self._parts
        listener = None
        try:
            warm(parts.judge)
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
            _log.info("gpuwaste advisor %s listens on %s for uids %s", parts.version, self._path, uids)
            server.run()
            _log.info("stopping")
        finally:
            if listener is not None:
                remove_socket(self._path, listener)
            parts.stop()
        _log.info("the advisor has stopped")
        return 0

    def reload(self) -> None:
        """Read the policies again, on a thread; those in force stay where the new ones cannot be used."""
        threading.Thread(target=self._reload, name="reload", daemon=True).start()

    def _reload(self) -> None:
        try:
            policies = load_policies(Path(self._config.advisor.policies_dir))
        except GpuwasteError as error:
            _log.error("policies are not reloaded, those before stay in force: %s", error)
            return
        self._parts.use_policies(policies)
