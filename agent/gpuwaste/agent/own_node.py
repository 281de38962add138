"""The facts that the agent needs before it can start: cluster, node, slurmd's directories."""

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from gpuwaste.core import log_event
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError, SlurmError
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.slurm.clients.client import SlurmClient
from gpuwaste.slurm.formats.list_conf import asked_places, existing_conf

_WAITING: Final = log_event.error(
    "agent-waits-for-slurm: waiting for Slurm: {error}",
    "The agent starts when slurmctld answers: check slurmctld and `slurm_conf`.",
)

_RETRY_S: Final = (5.0, 60.0)
_PATIENCE: Final = 3  # queries that may time out before the next message
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class OwnNode:
    """This node's place in its cluster."""

    cluster: str
    node: str
    spool_dir: Path
    slurmd_pid: Path | None
    slurm_files: tuple[Path, ...]  # files whose change may change the positions of GPUs


class Stopped(Exception):  # noqa: N818 no error: the agent was stopped while it waited
    """The agent was stopped before it had started."""


def find_own_node(
    config: Config,
    slurm: SlurmClient,
    clock: Clock,
    stop: threading.Event,
    events: EventLog,
    *,
    waiting: Callable[[str, float], None] = lambda *_: None,
) -> OwnNode:
    """Ask Slurm for facts that the configuration does not set; wait while slurmctld does not answer.

    `waiting` receives the reason, and for how many seconds there will be no other message.
    Raises ConfigError where this host is not a node of the cluster, Stopped.
    """

    def ask(question: Callable[[], _T]) -> _T:
        wait_s = _RETRY_S[0]
        while True:
            try:
                answer = question()
            except SlurmError as error:
                events.trouble(_WAITING, "Slurm", error=error)
                waiting(f"waiting for Slurm: {error}", wait_s + _PATIENCE * config.common.slurm_timeout_s)
            else:
                events.over("Slurm")
                return answer
            if clock.wait(stop, wait_s):
                raise Stopped
            wait_s = min(_RETRY_S[1], wait_s * 2)

    hostname = socket.gethostname().partition(".")[0]
    node = config.agent.node_name or ask(lambda: match_node(slurm, hostname))
    cluster = config.common.cluster or ask(slurm.cluster_name)
    spool_dir = config.agent.spool_dir or ask(slurm.config).spool_dir(node, hostname)
    conf = existing_conf(config.common.slurm_conf, asked_places(slurm.config, node))
    return OwnNode(
        cluster, node, Path(spool_dir), _slurmd_pid(slurm, node, hostname), (conf, conf.with_name("gres.conf"))
    )


def match_node(slurm: SlurmClient, hostname: str) -> str:
    """Return the one NodeName whose NodeHostName is this host's. Raises ConfigError, SlurmError."""
    names = sorted(node.name for node in slurm.nodes() if hostname in {node.hostname, node.hostname.partition(".")[0]})
    if len(names) == 1:
        return names[0]
    found = f"several nodes ({', '.join(names)}) have" if names else "no node of the cluster has"
    raise ConfigError(f"{found} NodeHostName={hostname}: set [agent] node_name to Slurm's NodeName of this host")


def _slurmd_pid(slurm: SlurmClient, node: str, hostname: str) -> Path | None:
    """Return slurmd's pid file, which changes when slurmd restarts; None where Slurm does not report it."""
    try:
        path = slurm.config().settings.get("SlurmdPidFile", "")
    except SlurmError:
        return None
    return Path(path.replace("%n", node).replace("%h", hostname)) if path else None
