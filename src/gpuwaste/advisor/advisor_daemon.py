"""`gpuwaste advisor`: makes its parts, warms them up, serves submit plugins, and closes the parts in order."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gpuwaste.act.campaigns.assignment import CampaignsInUse
from gpuwaste.advice.adviser import AdviceRequest, Adviser
from gpuwaste.advice.submit_frames import encode_reply
from gpuwaste.advisor.advisor_counters import Counters
from gpuwaste.advisor.advisor_history import AdvisorHistory, KnownJobs, Pending
from gpuwaste.advisor.advisor_metrics import AdvisorExporter
from gpuwaste.advisor.advisor_models import AdvisorModels
from gpuwaste.advisor.advisor_ports import AdvisorPorts, allowed_uids, cluster_of
from gpuwaste.advisor.advisor_socket import ListeningSocket, refuse_living
from gpuwaste.advisor.advisor_watch import AdvisorWatch, PolicyReload
from gpuwaste.advisor.history_feed import Feed
from gpuwaste.advisor.request_handler import RequestHandler
from gpuwaste.advisor.submit_server import Server
from gpuwaste.advisor.uid_lookup import Users
from gpuwaste.advisor.verdict_journal import VerdictJournal
from gpuwaste.advisor.verdict_judge import BudgetCounts, Judge
from gpuwaste.advisor.verdict_outbox import VerdictOutbox, VerdictShipping
from gpuwaste.advisor.verdict_writer import Writer
from gpuwaste.core import log_event
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.config import Config, load_config
from gpuwaste.core.files import UMASK, closed_directory
from gpuwaste.core.logs import set_up_logging
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.reload import Reloader
from gpuwaste.core.version import own_version
from gpuwaste.core.worker import Bus
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.net.systemd_notifier import SILENT, SystemdNotifier
from gpuwaste.slurm.clients.command_client import CommandClient
from gpuwaste.slurm.submit.job_desc import read_job_desc

_STARTED: Final = log_event.info("advisor-started: gpuwaste advisor {version} listens on {path} for uids {uids}")
_STOPS: Final = log_event.info("advisor-stops: advisor is stopping")
_STOPPED: Final = log_event.info("advisor-stopped: advisor has stopped")
_LOADED: Final[tuple[type[Part], ...]] = (
    VerdictOutbox,
    VerdictJournal,
    AdvisorHistory,
    AdvisorModels,
    BudgetCounts,
    CampaignsInUse,
    Judge,
)
"""Parts loaded before the socket is created; a part is listed after those that it uses, since the last ends first."""
_SERVING: Final[tuple[type[Part], ...]] = (
    RequestHandler,
    Server,
    VerdictShipping,
    AdvisorExporter,
    Writer,
    Users,
    PolicyReload,
    Feed,
    AdvisorWatch,
)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_SWITCH_S: Final = 2e-5
_ROUNDS: Final = 20
_SCRIPT: Final = "#!/bin/bash\n#SBATCH --gres=gpu:4 --mem=64G\nsrun python train.py\n"


def run_advisor(config: Config, path: Path | None = None) -> int:
    """Run the advisor until a signal; return the exit code. Raises GpuwasteError where it cannot start.

    `path` is the configuration file that SIGHUP reloads, None for the default one.
    """
    set_up_logging()
    notifier = SystemdNotifier.from_environment()
    stop = threading.Event()
    for number in _SIGNALS:
        signal.signal(number, lambda *_: stop.set())
    signal.signal(signal.SIGHUP, lambda *_: None)  # the policies are read below anyway
    os.umask(UMASK)
    closed_directory(Path(config.advisor.state_dir), "[advisor] state_dir")
    closed_directory(Path(config.advisor.socket).parent, "[advisor] socket", 0o755)
    slurm, clock = CommandClient(config.common.slurm_conf, config.common.slurm_timeout_s), SystemClock()
    refuse_living(Path(config.advisor.socket))  # before the history is loaded, which takes minutes
    cluster = cluster_of(config, slurm, clock, stop, waiting=notifier.starting)
    if stop.is_set():
        return 0
    ports = AdvisorPorts(
        cluster, slurm, daemon_client(config), clock, Path(config.advisor.state_dir), allowed_uids(config, slurm)
    )
    return Advisor(config, ports, notifier=notifier, read=lambda: load_config(path)).run(stop)


class Advisor:
    """One advisor; `run` serves until `stop` is set or a signal arrives."""

    def __init__(
        self,
        config: Config,
        ports: AdvisorPorts,
        *,
        notifier: SystemdNotifier = SILENT,
        read: Callable[[], Config] = load_config,
    ) -> None:
        """Load what the first answer needs. Raises GpuwasteError."""
        self._config = config
        self._ports = ports
        self._notifier = notifier
        self._read = read
        self._ready = f"answers on {config.advisor.socket}"
        self._parts = Parts(config, ports, Bus(), Counters(), Pending(), KnownJobs())
        self._parts.make(_LOADED)

    def run(self, stop: threading.Event) -> int:
        """Warm up, listen, serve; return the exit code. Raises ConfigError where it cannot listen."""
        parts = self._parts
        try:
            _warm(parts.get(Judge).adviser)
            _prefer_answers()
            parts.make(_SERVING)
            server = parts.get(Server)
            self._reloader = Reloader(self._config, self._read, ("common", "advisor"), parts.reloads())
            for number in _SIGNALS:
                signal.signal(number, lambda *_: server.stop())
            signal.signal(signal.SIGHUP, lambda *_: self.reload())
            if stop.is_set():
                return 0
            parts.start()
            uids = ", ".join(map(str, sorted(self._ports.allowed)))
            _STARTED.log(version=own_version(), path=self._config.advisor.socket, uids=uids)
            server.each_turn(self._notifier.alive)
            server.call(lambda: self._notifier.ready(self._ready))
            server.run()
            self._notifier.stopping()
            _STOPS.log()
        finally:
            if (listener := parts.find(ListeningSocket)) is not None:
                listener.close()  # first, so that no client waits for an answer
            parts.close()
        _STOPPED.log()
        return 0

    def reload(self) -> None:
        """Reload configuration and policies, on a thread; those in force stay if the new ones cannot be used."""
        threading.Thread(target=self._reload, name="reload", daemon=True).start()

    def _reload(self) -> None:
        self._notifier.reloading()
        self._reloader.reload()
        self._parts.get(PolicyReload).reload()
        self._notifier.ready(self._ready)


def _warm(adviser: Adviser) -> None:
    """Read, score, explain, decide and encode dummy submissions. Raises ModelError where the model does not run."""
    desc = read_job_desc({"user_id": 0, "name": "_warm", "tres_per_node": "gres:gpu:4", "script": _SCRIPT})
    for number in range(_ROUNDS):
        asked = AdviceRequest(desc.request("", 1_700_000_000 + number))
        for advice in (adviser.everything(asked), *adviser.advise([asked])):
            encode_reply("0" * 16, advice.decision.reply_action, advice.decision.printed)


def _prefer_answers() -> None:
    """Avoid delays of answers by garbage collection and by threads that compute for long.

    Existing objects live as long as the process and need no further collection; the loop collects the others while
    there are no requests. A computing thread yields within 20 us instead of 5 ms.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    sys.setswitchinterval(_SWITCH_S)
