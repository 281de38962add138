"""Plays a recording: recorded edges, a clock that follows them, and the product's own agents, hub and commands.

    with PlayedSite(directory) as site:
        site.play(print)
        print(site.gpuwaste("report", *site.window, user="alice").stdout)

Needs no root, no Slurm, munge or NVML; everything lives in `directory` and in this process, and ends with it.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from gpuwaste.agent.agent_daemon import Agent
from gpuwaste.agent.agent_ports import AgentPorts, NodeEdges
from gpuwaste.agent.own_node import OwnNode as NodeSite
from gpuwaste.core.repeat_suppressor import EventLog
from gpuwaste.hub.hub import Hub
from gpuwaste.hub.hub_daemon import make_checkers
from gpuwaste.hub.hub_ports import HubPorts
from gpuwaste.hub.server import WebServer, listening, open_tcp
from gpuwaste.jobs.gpu_assignments import GpuAssignments
from gpuwaste.jobs.importers.accounting_importer import Importer
from gpuwaste.net.daemon_client import daemon_client
from gpuwaste.testing.recording.clock import PlayedClock
from gpuwaste.testing.recording.edge import PlayedNode, PlayedSlurm
from gpuwaste.testing.recording.format import (
    SHIPPED,
    Accounted,
    AgentStart,
    Devices,
    Entry,
    RecordedCommand,
    RecordedMap,
    RecordedTick,
    RecordingError,
    Said,
    SiteFacts,
    Truth,
    read_recording,
)
from gpuwaste.testing.recording.keys import Keys
from gpuwaste.testing.running_site import SiteOptions
from gpuwaste.testing.simnvml import OracleEvent

_COMMAND_S: Final = 60.0
_END_S: Final = 30.0


@dataclass(slots=True)
class _Played:
    """An agent that plays, with the node that it sees."""

    agent: Agent
    node: PlayedNode
    state_dir: Path


@dataclass(slots=True)
class Heard:
    """What the player came by that is not the product's: the truth, the text of `top`, and recorded documents."""

    truth: Truth | None = None
    top: str = ""
    asked: list[RecordedCommand] = field(default_factory=list)


class PlayedSite:
    """The site of a recording. Raises RecordingError where the recording cannot be read."""

    def __init__(self, directory: Path, recording: Path = SHIPPED) -> None:
        self.directory = directory
        self.recording = recording
        self.opening, self._entries = read_recording(recording)
        self.options = SiteOptions(
            self.opening.interval_s, self.opening.ship_every_s, self.opening.sacct_every_s, self.opening.hub
        )
        self.heard = Heard()
        self._clock = PlayedClock(self.opening.t_us)
        self._slurm = PlayedSlurm(cluster=self.opening.cluster, clock=self._clock)
        for entry in self._entries:
            if isinstance(entry, RecordedMap):
                self._slurm.answers.setdefault(entry.job_id, []).append(entry)
        self._agents: dict[str, _Played] = {}
        self._starts = 0

    def __enter__(self) -> Self:
        socket = open_tcp("127.0.0.1:0")
        self._keys = Keys(self.directory, self.opening, f"http://{listening(socket)}")
        config = self._keys.hub()
        self._hub = Hub(config, HubPorts(self._slurm, self._clock, make_checkers(config)))
        self._hub.store.set_mark("recorded", 1)
        self._server = WebServer(self._hub.app, socket)
        self._serving = threading.Thread(target=self._server.run, kwargs={"signals": False}, name="hub", daemon=True)
        self._serving.start()
        self._hub.get(GpuAssignments).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for played in self._agents.values():
            played.agent.close()
        self._server.stop()
        self._serving.join(_END_S)
        self._hub.get(GpuAssignments).close()
        self._hub.store.close()

    @property
    def window(self) -> tuple[str, str, str, str]:
        """The options of a report that holds the recorded days, in the caller's zone."""
        first = datetime.fromtimestamp(self.opening.t_us / 1e6)  # noqa: DTZ006 as the command reads -S and -E
        last = datetime.fromtimestamp(self._entries[-1].t_us / 1e6) + timedelta(days=1)  # noqa: DTZ006 same
        return ("-S", f"{first:%Y-%m-%d}", "-E", f"{last:%Y-%m-%d}")

    @property
    def ended(self) -> int:
        """When the recorded run ended, UTC seconds."""
        return self._entries[-1].t_us // 1_000_000

    def play(self, say: Callable[[float, str], None]) -> Heard:
        """Play to the end; `say` gets each line of the recorded run with its seconds since the begin."""
        for entry in self._entries:
            mono_us = entry.mono_us if isinstance(entry, RecordedTick) else None
            self._clock.set(entry.t_us, mono_us)
            if isinstance(entry, Said):
                say((entry.t_us - self.opening.t_us) / 1e6, entry.text)
            else:
                self._play(entry)
        self._hub.get(Importer).step()
        return self.heard

    def _play(self, entry: Entry) -> None:
        match entry:
            case RecordedTick():
                self._tick(entry)
            case AgentStart():
                self._start(entry)
            case Accounted():
                self._slurm.take(entry)
                self._hub.get(Importer).step()
            case SiteFacts() | Devices():
                self._slurm.take(entry)
            case RecordedCommand(command=("now", *_), user=user):
                self.heard.top = self.gpuwaste("now", *self.window[:2], user=user, check=False).stdout
            case RecordedCommand():
                self.heard.asked.append(entry)
            case Truth():
                self.heard.truth = entry

    def _tick(self, tick: RecordedTick) -> None:
        if tick.node not in self._agents:
            raise RecordingError(f"{self.recording}: a tick of {tick.node} before its agent starts: record it anew")
        played = self._agents[tick.node]
        played.node.tick = tick
        played.agent.step()

    def _start(self, entry: AgentStart) -> None:
        """Start an agent; from one that was killed it has what lay on the disk at that moment."""
        self._starts += 1
        state_dir = self.directory / f"{entry.node}-{self._starts}"
        killed = self._agents.pop(entry.node, None)
        if killed is None:
            state_dir.mkdir()
        else:
            shutil.copytree(killed.state_dir, state_dir)
            killed.agent.close()
        node = PlayedNode(RecordedTick(entry.t_us, self._clock.mono_us(), entry.node))
        config = self._keys.agent(entry.node, state_dir)
        ports = AgentPorts(
            NodeSite(self.opening.cluster, entry.node, state_dir / "spool", None, ()),
            clock=self._clock,
            events=EventLog(self._clock),
            slurm=self._slurm,
            hub=daemon_client(config),
            edges=NodeEdges(node.collectors, node.device_map),
        )
        agent = Agent(config, ports)
        agent.restore()
        self._agents[entry.node] = _Played(agent, node, state_dir)

    def oracle(self) -> list[OracleEvent]:
        """Return what the recorded load programs say that they did."""
        return list(self.heard.truth.events) if self.heard.truth else []

    def gpuwaste(self, *arguments: str, user: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the command with a user's token."""
        words = list(arguments)
        subject = {"--user", "--accounts", "--allusers"}
        if words[:1] == ["report"] and not subject & set(words):
            words += ["--user", user]  # whose name the process that runs here does not bear
        argv = self.command_line(*words, user=user)
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=_COMMAND_S, check=False, stdin=subprocess.DEVNULL,
            env=dict(os.environ) | {"PYTHONSAFEPATH": "1"}, cwd=self.directory,
        )  # fmt: skip
        if check and done.returncode:
            raise RecordingError(f"gpuwaste {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()[-500:]}")
        return done

    def command_line(self, *arguments: str, user: str) -> list[str]:
        """Return what runs the command with a user's token."""
        return [sys.executable, "-m", "gpuwaste.cli", *arguments, "--config", str(self._keys.user(user))]

    def json(self, *arguments: str, user: str) -> dict[str, Any]:
        """Run the command with --json and return its document."""
        document: dict[str, Any] = json.loads(self.gpuwaste(*arguments, "--json", user=user).stdout)
        return document
