"""The agent of bench/agent.py in its own process, on a clock that jumps from tick to tick."""

import argparse
import contextlib
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gpuwaste.agent.agent_daemon import Agent
from gpuwaste.agent.agent_ports import AgentPorts, NodeEdges
from gpuwaste.agent.bounded_calls import BoundedCollector
from gpuwaste.agent.collectors import Collectors
from gpuwaste.agent.collectors.amd import AmdCollector
from gpuwaste.agent.collectors.host import HostUseCollector
from gpuwaste.agent.collectors.intel import IntelCollector
from gpuwaste.agent.collectors.nvml import NvmlCollector
from gpuwaste.agent.own_node import OwnNode
from gpuwaste.agent.sample_server import Askers
from gpuwaste.core.agent_config import AgentConfig
from gpuwaste.core.clock import Clock
from gpuwaste.core.config import Config
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.core.site_config import CommonConfig
from gpuwaste.core.units import DAY_S
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.munge_credentials import Munge, MungeChecker
from gpuwaste.net.tokens import TokenIssuer
from gpuwaste.slurm.formats.gpu_positions import DevicePosition
from gpuwaste.testing.daemon_config import free_port
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.simnvml import SimNode

INTERVAL_S: Final = 10
GPUS: Final = 8
NODE: Final = "gpu1"


class DayClock(Clock):
    """Time that jumps over the sampler's waits; other threads wait in proportion."""

    def __init__(self, start_us: int, ticks: int) -> None:
        self._us = start_us
        self._left = ticks
        self.folding_s = 0.0
        self._may_go = threading.Event()
        self.reached = threading.Event()

    def utc_us(self) -> int:
        """Return the simulated time."""
        return self._us

    def mono_us(self) -> int:
        """Return the same: this clock never steps."""
        return self._us

    def go(self, ticks: int) -> None:
        """Let the sampler make so many more ticks."""
        self._left = ticks
        self.reached.clear()
        self._may_go.set()

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Jump, if it is the sampler that waits; halt after the ticks that were granted."""
        if threading.current_thread().name != "sampler":
            return stop.wait(seconds / 500)
        self._wait_for_child()
        self._left -= 1
        if self._left <= 0:
            self.reached.set()
            while self._left <= 0 and not stop.is_set():
                self._may_go.wait(0.05)
                self._may_go.clear()
        self._us += round(seconds * 1e6)
        return stop.is_set()

    def _wait_for_child(self) -> None:
        """Let a child end, as it would long before the next tick; the agent reaps it."""
        began = time.monotonic()
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            self.folding_s += time.monotonic() - began


class LastSeconds(Clock):
    """The real clock, ten seconds late: a collector that follows it reads the last ten seconds of duty samples."""

    def utc_us(self) -> int:
        """Return real time, late."""
        return time.time_ns() // 1000 - INTERVAL_S * 1_000_000

    mono_us = utc_us

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        """Never called by a collector."""
        return stop.wait(seconds)


def run_child(directory: Path, hub_url: str, munge_socket: str, vendors: Sequence[str] = ()) -> None:
    """Be the agent: obey "go TICKS", "time", "usage" and "port" on stdin, one JSON answer each."""
    start_us = (time.time_ns() // 1000 // (DAY_S * 1_000_000) + 1) * DAY_S * 1_000_000
    clock = DayClock(start_us, 0)
    run_dir, spool = directory / "run", directory / "spool"
    common = replace(CommonConfig(), run_dir=str(run_dir))
    agent_config = replace(
        AgentConfig(),
        state_dir=str(directory / "state"),
        jobs_dir=str(directory / "jobs"),
        listen=f"127.0.0.1:{free_port()}",
    )
    config = Config(common=common, agent=agent_config)
    slurm = FakeSlurm(devices={NODE: [DevicePosition(n, (f"/dev/nvidia{n}",), minor=n) for n in range(GPUS)]})
    host = HostUseCollector(directory / "none", Path("/proc"), spool, NODE)
    collectors = Collectors([NvmlCollector(LastSeconds(), directory / "none")], [host])
    sys_root = SimNode(directory / "node").sys_root
    others: dict[str, Callable[[], AmdCollector | IntelCollector]] = {
        "amd": lambda: AmdCollector(sys_root),
        "intel": lambda: IntelCollector(sys_root, Path("/proc")),
    }
    collectors.gpu += [BoundedCollector(others[vendor]()) for vendor in vendors]
    ports = AgentPorts(
        OwnNode("gw", NODE, spool, None, ()),
        clock=clock,
        events=EventLog(clock),
        slurm=slurm,
        hub=HubClient(hub_url, TokenIssuer(directory / "token")),
        askers=_askers(munge_socket) if munge_socket else None,
        edges=NodeEdges(collectors=lambda *_: collectors),
    )
    agent = Agent(config, ports)
    stop = threading.Event()
    runner = threading.Thread(target=agent.run, args=(stop,))
    answers: dict[str, Any] = {
        "time": clock.utc_us,
        "usage": lambda: _usage() | {"folding_s": clock.folding_s},
        "port": lambda: int(agent_config.listen.rpartition(":")[2]),
    }
    for line in sys.stdin:
        word, _, value = line.strip().partition(" ")
        if word == "go":
            clock.go(int(value))
            if not runner.is_alive():
                runner.start()
            clock.reached.wait()
        print(json.dumps(answers[word]() if word in answers else None), flush=True)
    stop.set()
    agent.close()


def _askers(munge_socket: str) -> Askers:
    return Askers({"munge": MungeChecker(Munge(munge_socket))}, frozenset({os.geteuid()}))


def _usage() -> dict[str, float]:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return {
        "cpu_s": cpu_s,
        "child_cpu_s": children.ru_utime + children.ru_stime,
        "own_mb": own.ru_maxrss / 1024,
        "child_mb": children.ru_maxrss / 1024,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("hub")
    parser.add_argument("--munge", default="", help="answer this process' user for samples")
    parser.add_argument("--vendor", action="append", default=[], help="read GPUs of amd or intel too (repeatable)")
    options = parser.parse_args()
    run_child(options.directory, options.hub, options.munge, options.vendor)
