"""A whole Slurm cluster on loopback in one private directory, for tests, the demo and benchmarks.

    with LoopbackCluster("/tmp/gw1", Variant(seed=7)) as cluster:
        job = cluster.sbatch("sleep 5", user="alice", gres="gpu:1")
        cluster.wait_job(job, "RUNNING")

Nodes: gpu1 and gpu2 (four a100 each), cpu1. Partitions: gpu (default), cpu, whole (exclusive use of gpu1, gpu2).
Users: alice and bob in proj1, carol in proj2 and coordinator of proj1, dave without any account; gpuwaste, the
agents' and the hub's own user, is Operator. Options: `Variant` in cluster_options.

Life: `start`, `stop`, `reset` (no jobs, no processes of ours, all daemons up), `detach` (stays up after this process),
`attach(directory)`. When the owner process ends in any way, SIGKILL included, a reaper stops the cluster.

Slurm: `run(argv, user=, node=, env=, stdin=, timeout_s=, check=)`, `sbatch(script, user=, **options)` -> job id,
`wait_job(id, states, timeout_s)`, `job_states(id)`, `show_job(id)`, `job_output(id)`, `sacct(*arguments, user=)` ->
rows, `wait_accounted(id)` -> rows, `jwt_token(user)`, `slurmrestd_url`, `stop_slurmd(node)`, `restart_slurmd(node)`,
`restart_slurmctld()`, `cancel_jobs()`, `node_states()`, `wait_nodes_idle()`, `release` (such as (24, 11)),
`slurmrestd_versions()`.

Nodes: `nodes[name]` has name, address (NodeAddr, and the origin of its munge credentials), port, munge_socket, minors
(gres.conf order), run_dir, spool_dir, state_dir; `munge_socket` is the hub's. `env(node)` is the environment for a
program on a node (SLURM_CONF, GPUWASTE_MUNGE_SOCKET, GPUWASTE_RUN_DIR, SLURMD_NODENAME, `node_env_extra[node]`);
`set_node_env(node, NAME=value)` adds to it, for jobs too. A job's tasks see GPUWASTE_SIM_MINORS, the device minors it
holds on their node ("3,1"; unset without GPUs); `job_minors(node, job)` is the same for a test, and
DIRECTORY/sim/NODE/gres.log has a line per prolog and epilog.

Programs of ours: `spawn(argv, user=, caps=, node=, env=, name=)` -> ManagedProcess (`wait_for`, `tail`, `stop`,
`kill`, `alive`), ended at `stop` and `reset`.
"""

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from gpuwaste.testing import cluster_directory as cluster_config
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster_daemons import Daemons
from gpuwaste.testing.cluster_options import NODE_NAMES, STATE, Layout, Variant
from gpuwaste.testing.cluster_process import ClusterError, ManagedProcess, as_user, marked, spawn, sweep

__all__ = ["ClusterError", "LoopbackCluster", "ManagedProcess", "Variant"]

_DEFAULT = Variant()


class LoopbackCluster(Daemons):
    """One Slurm cluster; see the module for what it offers."""

    def __init__(self, directory: str | Path, variant: Variant = _DEFAULT, *, remove: bool = False) -> None:
        """Prepare a cluster in `directory`; `remove` says that nobody wants its data after the stop.

        Then `stop` kills instead of asking, and a reaper that has to stop it removes the directory too.
        """
        self.directory = Path(directory)
        self.variant = variant
        self.node_env_extra = {}
        self.processes = {}
        self.spawned: list[ManagedProcess] = []
        self._remove = remove
        self._reaper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @classmethod
    def attach(cls, directory: str | Path) -> Self:
        """Return the cluster that another process started in `directory`."""
        layout, processes = Layout.load(Path(directory))
        cluster = cls(directory, layout.variant)
        cluster.layout = layout
        logs = layout.directory / "log"
        for name, (pid, start) in processes.items():
            files = (logs / f"{name}.out", logs / f"{name.removeprefix('slurmd-')}.log")
            cluster.processes[name] = ManagedProcess(name, pid, start, files)
        return cluster

    def start(self) -> None:
        """Start the cluster and return when all its nodes take jobs; if that fails, nothing is left running."""
        self._check()
        cluster_host.add_users()
        known = (self.directory / STATE).exists()
        cluster_id = Layout.load(self.directory)[0].cluster_id if known else uuid.uuid4().hex
        complete = self.directory / "complete"
        fresh = not complete.exists()
        self._ports = cluster_host.Ports(3 + len(NODE_NAMES))
        self.layout = Layout(self.directory, cluster_id, self.variant, tuple(self._ports.numbers))
        try:
            self._check_cgroups()
            cluster_config.write_all(self.layout)
            self.processes.clear()
            self._save()
            self._start_reaper()
            self.start_daemons(fresh=fresh)
            complete.touch()
            if not fresh:
                self.cancel_jobs()  # those that the last stop ended: slurmctld still believes in them
        except BaseException:
            with contextlib.suppress(ClusterError):
                self.stop()
            raise
        finally:
            self._ports.close()

    def _check(self) -> None:
        reason = cluster_host.missing()
        if reason:
            raise ClusterError(reason)
        if not self.directory.is_absolute() or len(os.fsencode(self.directory)) > cluster_host.MAX_PATH:
            limit = f"an absolute path of at most {cluster_host.MAX_PATH} bytes (Unix sockets below it)"
            raise ClusterError(f"{self.directory}: a cluster's directory needs {limit}, such as /tmp/gw1")
        if not self.directory.exists():
            return
        if (self.directory / STATE).exists():
            if marked(Layout.load(self.directory)[0].cluster_id, self.directory):
                raise ClusterError(f"{self.directory} is in use; first: tools/cluster down --dir {self.directory}")
        elif any(self.directory.iterdir()):
            raise ClusterError(f"{self.directory} is not empty and holds no cluster; name another directory")

    def _check_cgroups(self) -> None:
        if not self.variant.constrained:
            return
        if self.variant.cgroup_v2:
            unified = cluster_host.cgroup_v2()
            if unified is None:
                raise ClusterError("cgroup_v2 needs the unified hierarchy of cgroups mounted")
            (unified / "system.slice").mkdir(exist_ok=True)  # systemd's, where the host has it
        elif not cluster_host.cgroup_v1_devices():
            raise ClusterError("constrain_devices needs the cgroup v1 controllers devices, freezer and cpuset mounted")
        cluster_host.remove_cgroups(list(self.nodes))
        if cluster_host.cgroups_of(list(self.nodes)):
            raise ClusterError("another cluster has cgroups of the same node names; choose a node_prefix")

    def _start_reaper(self) -> None:
        argv = [sys.executable, "-m", "gpuwaste.testing.cluster_reaper", str(self.directory)]
        with (self.directory / "log" / "reaper.out").open("ab") as log:
            self._reaper = subprocess.Popen(
                [*argv, *(["--remove"] if self._remove else [])],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                env={"PATH": cluster_host.search_path(), "PYTHONPATH": ":".join(path for path in sys.path if path)},
            )

    def detach(self) -> None:
        """Let the cluster stay up when this process ends."""
        if self._reaper and self._reaper.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._reaper.stdin.write(b"released\n")
                self._reaper.stdin.close()
            self._reaper.wait(30)
        self._reaper = None

    def stop(self) -> None:
        """End every process of the cluster, jobs included, and remove its cgroups; the directory stays."""
        if "layout" not in vars(self) or not self.directory.exists():
            return
        try:
            self._stop_spawned()
            if not self._remove:
                self.stop_daemons()
        finally:
            sweep(self.layout.cluster_id, self.directory)
            for process in self.processes.values():
                process.alive()  # takes the exit status, so that no zombie stays
            if self.variant.constrained:
                cluster_host.remove_cgroups(list(self.nodes))
            self.processes.clear()
            self._save()
            self.detach()

    def reset(self) -> None:
        """Return to an idle cluster: no jobs, no programs of ours, all daemons up; accounting keeps its history."""
        self._stop_spawned()
        self.start_daemons(fresh=False)
        for node, state in self.node_states().items():
            if state.startswith(("drain", "down")):
                self.run(["scontrol", "update", f"NodeName={node}", "State=RESUME"], check=False)
        self.cancel_jobs()

    def spawn(
        self,
        argv: Sequence[str],
        *,
        user: str = cluster_host.AGENT_USER,
        caps: Sequence[str] = (),
        node: str | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        before: Sequence[str] = (),
    ) -> ManagedProcess:
        """Start a program of ours as `user` with `caps` (such as "sys_ptrace"), its output in log/NAME.out.

        `before` is a command with which root starts it, such as env NAME=VALUE.
        """
        label = name or f"{Path(argv[0]).name}{f'-{node}' if node else ''}"
        home = {"USER": user, "LOGNAME": user, "HOME": str(self.directory / "home" / user)}
        whole = {**self.env(node), **home, **(env or {})}
        log = self.directory / "log" / f"{label}.out"
        process = spawn(label, [*before, *as_user(user, caps), *argv], [log], whole, Path("/"))
        self.spawned.append(process)
        return process

    def _stop_spawned(self) -> None:
        for process in reversed(self.spawned):
            process.stop()
        self.spawned.clear()

    @property
    def munge_socket(self) -> Path:
        """Socket of the cluster's own munged, where the hub decodes; its origin is 127.0.0.1."""
        return self.layout.munge_socket
