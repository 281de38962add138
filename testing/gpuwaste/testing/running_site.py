"""A whole site on loopback: a real Slurm cluster with simulated GPUs, its agents and its hub as subprocesses.

with LoopbackCluster(directory, Variant(seed=7)) as cluster, Site(cluster) as site:
    job = site.submit("alice", "--phase 30:90", gres="gpu:2")
    print(site.gpuwaste("report", user="alice").stdout)
"""

import json
import pwd
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.net.peers import peer_of
from gpuwaste.testing.cluster import LoopbackCluster, ManagedProcess
from gpuwaste.testing.cluster_gpus import node_gpus, pci_devices_of
from gpuwaste.testing.cluster_process import ClusterError, as_user, wait_until
from gpuwaste.testing.daemon_config import free_port, to_toml
from gpuwaste.testing.patience import patient
from gpuwaste.testing.runtime import EXTRAS, Runtime, shared_runtime
from gpuwaste.testing.simnvml import OracleEvent, SimNode, library_env, make_gpus, read_oracle

_USER: Final = "gpuwaste"
_ANSWER_S: Final = 150.0  # the first plan has the hub compile its loops


@dataclass(slots=True)
class SiteOptions:
    """How a site's daemons are configured; times in seconds."""

    interval_s: float = 2.0
    ship_every_s: float = 6.0
    sacct_every_s: float = 3.0
    hub: Mapping[str, Any] = field(default_factory=dict)
    advisor: Mapping[str, Any] = field(default_factory=dict)
    plugin: Mapping[str, Any] = field(default_factory=dict)
    policies: Mapping[str, str] = field(default_factory=dict)  # file name -> TOML; none: a fresh install's shadow
    agent: Mapping[str, Any] = field(default_factory=dict)
    notify: Mapping[str, Any] = field(default_factory=dict)
    web: Mapping[str, Any] = field(default_factory=dict)
    actor: Mapping[str, Any] = field(default_factory=dict)
    spare: bool = False  # of a store in a lake: a second hub stands by
    tapes: Path | None = None  # where hub and agents record what they see (testing.recording), None: they do not


class Site:
    """Agents and hub of one running cluster; everything lives in the cluster's directory and ends with it."""

    def __init__(self, cluster: LoopbackCluster, native: Path, options: SiteOptions | None = None) -> None:
        """`native` is the folder with the simulated NVML and the load program (make native)."""
        self.cluster = cluster
        self.options = options or SiteOptions()
        self.directory = cluster.directory / "site"
        self.hub_port = free_port()
        self.hub_front_port = self.hub_port  # where agents and users connect; a test may put a proxy there
        self.agents: dict[str, ManagedProcess] = {}
        self.hub: ManagedProcess | None = None
        self.spare: ManagedProcess | None = None  # of a store in a lake: the hub that stands by
        self.spare_port = 0
        self.advisor: ManagedProcess | None = None
        self.backup_advisor: ManagedProcess | None = None
        self.actor: ManagedProcess | None = None
        self.advisor_port, self.backup_advisor_port = free_port(), free_port()
        self.nodes: dict[str, SimNode] = {}
        self.exporters = {name: free_port() for name in cluster.nodes}
        self._native_source = native
        self.native = self.directory / "native"
        self.runtime: Runtime

    def __enter__(self) -> Self:
        self.prepare()
        self.start_hub()
        if self.options.spare:
            self.start_spare()
        for node in self.cluster.nodes:
            self.start_agent(node)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def prepare(self) -> None:
        """Lay out the simulated nodes, the load program, the runtime and the configuration files."""
        self.directory.mkdir(mode=0o755, exist_ok=True)
        extras = EXTRAS | ({"lake"} if self.options.hub.get("store") == "lake" else set())
        self.runtime = shared_runtime(self.directory / "runtime", extras)
        shutil.copytree(self._native_source, self.native, dirs_exist_ok=True)
        oracle = self.oracle_directory
        oracle.mkdir(exist_ok=True)
        oracle.chmod(0o1777)
        for node in self.cluster.nodes.values():
            self._prepare_node(node.name)
        for name in ("hub", "advisor", "models", "backup"):
            self._owned(self.directory / name)
        self.write_policies(self.options.policies)
        self.write_campaigns("the key of a site without campaigns", {})
        if self.options.tapes is not None:
            self._owned(self.options.tapes)
        self._write_config("hub", {})
        self._write_config("backup", {})

    def _prepare_node(self, name: str) -> None:
        node = self.cluster.nodes[name]
        if node.minors:
            gpus = node_gpus(make_gpus(sorted(node.minors)), node)
            self.nodes[name] = SimNode.create(self.directory / f"sim-{name}", gpus)
            self.cluster.set_node_env(name, **self.nodes[name].env, GPUWASTE_SIM_LOG=str(self.oracle_directory))
        self._owned(node.state_dir)
        self._write_config(name, {"node_name": name, "state_dir": str(node.state_dir)})

    def _owned(self, path: Path) -> None:
        """Make a directory of the daemons' own user."""
        path.mkdir(parents=True, exist_ok=True)
        entry = pwd.getpwnam(_USER)
        shutil.chown(path, entry.pw_uid, entry.pw_gid)

    @property
    def window(self) -> tuple[str, ...]:
        """Arguments of `report`: none, since its default window holds all that a new site did."""
        return ()

    @property
    def oracle_directory(self) -> Path:
        """Where the load programs keep their own logs."""
        return self.directory / "oracle"

    def oracle(self) -> list[OracleEvent]:
        """Return what the load programs say that they did."""
        return read_oracle(self.oracle_directory)

    def config_path(self, name: str) -> Path:
        """Return gpuwaste.toml of a node, of "hub" or of "backup", the backup controller; users read the hub's."""
        return self.directory / f"{name}.toml"

    def _write_config(self, name: str, own: dict[str, Any]) -> None:
        cluster, options = self.cluster, self.options
        node = cluster.nodes.get(name)
        backup = name == "backup"
        common = {
            "hub_url": " ".join(f"http://127.0.0.1:{port}" for port in (self.hub_front_port, self.spare_port) if port),
            "munge_socket": str(node.munge_socket if node else cluster.layout.munge_socket),
            "slurm_conf": str(cluster.layout.slurm_conf),
            "models_dir": str(self.directory / "models"),
            "run_dir": str(node.run_dir if node else self.directory / "hub"),
            "campaigns_dir": str(self.directory / "campaigns.d"),
            "campaign_key_file": str(self.directory / "campaign.key"),
        }
        agent: dict[str, Any] = {}
        if node:
            agent = {
                **own,
                "interval_s": options.interval_s,
                "ship_every_s": options.ship_every_s,
                "collectors": ["nvml", "host"],
                "spool_dir": str(node.spool_dir),
                "jobs_dir": str(node.jobs_dir),
                "listen": f"127.0.0.1:{self.exporters[name]}",
                **options.agent,
            }
            if name in self.nodes:
                agent["mig_minors"] = str(self.nodes[name].mig_minors)
        hub = {
            "listen": f"127.0.0.1:{self.spare_port if name == 'spare' else self.hub_port}",
            "state_dir": str(self.directory / ("spare" if name == "spare" else "hub")),
            "sacct_every_s": options.sacct_every_s,
            "sacct_overlap_s": 600.0,
            "map_min_interval_s": 0.2,
            **options.hub,
        }
        advisor = {
            "socket": str(self.backup_socket if backup else self.advisor_socket),
            "state_dir": str(self.directory / ("backup" if backup else "advisor")),
            "policies_dir": str(self.policies_dir),
            "listen": f"127.0.0.1:{self.backup_advisor_port if backup else self.advisor_port}",
            "history_every_s": 1.0,
            **options.advisor,
        }
        plugin = {"kill_switch": str(self.kill_switch), **options.plugin}
        sections = {"common": common, "agent": agent, "hub": hub, "advisor": advisor, "plugin": plugin}
        more = {"notify": options.notify, "web": options.web, "actor": options.actor}
        self.config_path(name).write_text(to_toml({**sections, **more}))

    def write_policies(self, policies: Mapping[str, str]) -> None:
        """Replace the policies: TOML by file name; the advisor reads them at its start and on SIGHUP."""
        shutil.rmtree(self.policies_dir, ignore_errors=True)
        self.policies_dir.mkdir(mode=0o755)
        for name, text in policies.items():
            (self.policies_dir / name).write_text(text, encoding="utf-8")

    def write_campaigns(self, key: str, campaigns: Mapping[str, str]) -> None:
        """Replace the campaigns, TOML by file name, and the key; hub and advisor read them within a minute."""
        folder, file = self.directory / "campaigns.d", self.directory / "campaign.key"
        shutil.rmtree(folder, ignore_errors=True)
        file.write_text(key, encoding="utf-8")
        file.chmod(0o600)
        shutil.chown(file, _USER)
        folder.mkdir(mode=0o755)
        for name, text in campaigns.items():
            (folder / name).write_text(text, encoding="utf-8")

    @property
    def policies_dir(self) -> Path:
        """The site's policies."""
        return self.directory / "policies.d"

    @property
    def kill_switch(self) -> Path:
        """While this file is there, the submit plugins ask nothing."""
        return self.directory / "disable"

    @property
    def advisor_socket(self) -> Path:
        """Where the submit plugins of this site ask: a directory that the advisor's user owns."""
        return self.directory / "hub" / "advisor.sock"

    @property
    def backup_socket(self) -> Path:
        """Where the submit plugin of a backup controller asks."""
        return self.directory / "backup" / "advisor.sock"

    def refresh_config(self) -> None:
        """Write all configuration files again after a change of ports or options."""
        self._write_config("hub", {})
        self._write_config("backup", {})
        for name, node in self.cluster.nodes.items():
            self._write_config(name, {"node_name": name, "state_dir": str(node.state_dir)})

    def start_hub(self, *, prefix: Sequence[str] = ()) -> ManagedProcess:
        """Start the hub and wait until it answers. `prefix` is a command to start it with."""
        argv = [*prefix, *self._daemon("hub", "hub")]
        self.hub = self.cluster.spawn(argv, user=_USER, env=self.runtime.env, name="hub")
        self.hub.wait_for(lambda: _answers(f"http://127.0.0.1:{self.hub_port}/v1/health"), 30, "the hub to answer")
        return self.hub

    def start_spare(self) -> ManagedProcess:
        """Let a second hub stand by on the lake, which agents and commands know of from now on."""
        self._owned(self.directory / "spare")
        self.spare_port = free_port()
        self.refresh_config()
        self._write_config("spare", {})
        argv = self.runtime.command("hub", "run", "--config", str(self.config_path("spare")))
        spare = self.cluster.spawn(argv, user=_USER, env=self.runtime.env, name="spare")
        spare.wait_for(lambda: "hub-stands-by:" in spare.tail(), 60, "the second hub to stand by")
        self.spare = spare
        return spare

    def lose_hub(self) -> None:
        """Kill the hub, and return when the one that stood by serves; it is the site's hub then."""
        if self.hub is None or self.spare is None:
            raise ClusterError("no hub stands by: start_spare")
        self.hub.kill()
        url = f"http://127.0.0.1:{self.spare_port}/v1/health"
        self.spare.wait_for(lambda: _serves(url), 90, "the second hub to take over")
        self.hub, self.spare = self.spare, None
        self.hub_port, self.spare_port = self.spare_port, self.hub_port

    def start_advisor(self, *, prefix: Sequence[str] = ()) -> ManagedProcess:
        """Start the advisor and wait until it listens: it is warm by then. `prefix` is a command to start it with."""
        argv = [*prefix, *self.runtime.command("advisor", "run", "--config", str(self.config_path("hub")))]
        self.advisor = self.cluster.spawn(argv, user=_USER, env=self.runtime.env, name="advisor")
        _wait_listening(self.advisor, self.advisor_socket)
        return self.advisor

    def start_backup_advisor(self) -> ManagedProcess:
        """Start the advisor beside the backup controller and wait until it listens."""
        argv = self.runtime.command("advisor", "run", "--config", str(self.config_path("backup")))
        self.backup_advisor = self.cluster.spawn(argv, user=_USER, env=self.runtime.env, name="advisor-backup")
        _wait_listening(self.backup_advisor, self.backup_socket)
        return self.backup_advisor

    def start_actor(self, user: str) -> ManagedProcess:
        """Start the actor as a user to whom Slurm gives its rights."""
        argv = self.runtime.command("actor", "run", "--config", str(self.config_path("hub")))
        self.actor = self.cluster.spawn(argv, user=user, env=self.runtime.env, name="actor")
        return self.actor

    def start_agent(self, node: str, *, prefix: Sequence[str] = ()) -> ManagedProcess:
        """Start a node's agent, without any capability; wait until it answers.

        `prefix` is a command to start it with, such as env NAME=VALUE.
        """
        argv = self._daemon("agent", node)
        library = library_env(self.native) if node in self.nodes else {}
        agent = self.cluster.spawn(
            [*prefix, *argv],
            user=_USER,
            node=node,
            env={**self.runtime.env, **library},
            name=f"agent-{node}",
            before=pci_devices_of(self.cluster.nodes[node], self.nodes.get(node)),
        )
        self.agents[node] = agent
        url = f"http://127.0.0.1:{self.exporters[node]}/metrics"
        agent.wait_for(lambda: _answers(url), 30, f"the agent of {node} to answer")
        return agent

    def _daemon(self, program: str, name: str) -> list[str]:
        """Return the command line of a daemon, or of the one that records what it sees."""
        config = str(self.config_path(name))
        if self.options.tapes is None:
            return self.runtime.command(program, "run", "--config", config)
        tape = str(self.options.tapes / f"{name}.tape")
        return self.runtime.module(f"gpuwaste.testing.recording.{program}", "--config", config, "--tape", tape)

    def stop(self) -> None:
        """End agents, the advisor and the actor, then the hub."""
        for process in [*self.agents.values(), self.advisor, self.backup_advisor, self.actor, self.spare, self.hub]:
            if process is not None:
                process.stop()

    def load(self, *arguments: str) -> str:
        """Return the load program's command line for a job script."""
        return " ".join([str(self.native / "gpuwaste-load"), *arguments])

    def submit(self, user: str, load: str, **options: str | int | bool) -> int:
        """Submit a batch job that runs the load program with these arguments; return the job id."""
        options.setdefault("output", "/dev/null")
        return self.cluster.sbatch(self.load(load), user, **options)

    def gpuwaste(self, *arguments: str, user: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run the command as a user of the site."""
        argv = self.runtime.command(*arguments, "--config", str(self.config_path("hub")))
        return self.cluster.run(argv, user, env=self.runtime.env, check=check, timeout_s=_ANSWER_S)

    def command_line(self, *arguments: str, user: str) -> list[str]:
        """Return what runs the command as a user of the site from root's shell."""
        own = [f"{name}={value}" for name, value in self.runtime.env.items()]
        command = self.runtime.command(*arguments, "--config", str(self.config_path("hub")))
        return [*as_user(user), *(["env", *own] if own else []), *command]

    def json(self, *arguments: str, user: str) -> dict[str, Any]:
        """Run the command with --json and return its document."""
        document: dict[str, Any] = json.loads(self.gpuwaste(*arguments, "--json", user=user).stdout)
        return document

    def as_root(self) -> HubClient:
        """Return a client of the hub, past any proxy, with root's credential: an administrator of Slurm."""
        return HubClient(f"http://127.0.0.1:{self.hub_port}", MungeIssuer(Munge(str(self.cluster.munge_socket))))

    def wait_reported(self, job_id: int, devices: int, timeout_s: float = 60) -> dict[str, Any]:
        """Wait until the hub knows the job's end and final rows of all its devices; return what the command prints."""
        hub = self.as_root()
        seen: dict[str, Any] = {}

        def complete() -> bool:
            try:
                seen.update(hub.get(f"/v1/jobs/{job_id}"))
            except GpuwasteError as error:
                seen["error"] = str(error)
                return False
            return _is_complete(seen, devices)

        wait_until(complete, timeout_s, f"job {job_id} to be reported", lambda: json.dumps(seen)[:2000], poll_s=0.5)
        return self.json("job", str(job_id), user="root")


def _is_complete(document: Mapping[str, Any], devices: int) -> bool:
    """Whether all runs of the printed id have ended, and `devices` of them in all were reported to their end."""
    runs = document.get("runs", [])
    if not runs or any(run["end"] is None for run in runs):
        return False
    found = [device for run in runs for device in run["devices"] if device["gpu_uuid"]]
    return len(found) >= devices and all(device["final"] for device in found)


def _wait_listening(process: ManagedProcess, path: Path) -> None:
    """Wait until this very process listens at a Unix socket: a killed one leaves its socket behind."""

    def listens() -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)):
                return False
            return peer_of(probe)[0] == process.pid

    process.wait_for(listens, 60, f"{process.name} to listen")


def _serves(url: str) -> bool:
    """Tell whether a hub is well by its own word: one that stands by answers 503."""
    try:
        with urllib.request.urlopen(url, timeout=patient(5)):  # noqa: S310 a loopback address of our own
            return True
    except (urllib.error.URLError, OSError):
        return False


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=patient(5)):  # noqa: S310 a loopback address of our own
            return True
    except urllib.error.HTTPError:
        return True
    except (urllib.error.URLError, OSError):
        return False
