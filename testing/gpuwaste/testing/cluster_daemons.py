"""Starts and ends a cluster's daemons in their order, each one waited for until it really answers."""

import fcntl
import os
import re
import shutil
import signal
from collections.abc import Collection, Sequence
from pathlib import Path

from gpuwaste.testing import cluster_host as host
from gpuwaste.testing.cluster_commands import SlurmCommands
from gpuwaste.testing.cluster_process import SLURM_POLL_S, ClusterError, ManagedProcess, as_user, spawn, wait_until
from gpuwaste.testing.sim_build import build_native

_NEEDS_STATE = (26, 5)
"""The release since which slurmctld does not start again without all of its saved state, as after an early kill."""
_REST_USER = "nobody"  # slurmrestd refuses root and SlurmUser; it needs no rights, the caller's token has them
_BUILD = Path(__file__).parents[3] / "build"
_LOG_SIZE = "--innodb-log-file-size=16M"
_MARIADB = (
    "--no-defaults",
    "--user=mysql",
    "--skip-networking",
    "--innodb-buffer-pool-size=32M",
    _LOG_SIZE,
    "--innodb-lock-wait-timeout=900",
    "--innodb-flush-log-at-trx-commit=0",
    "--skip-innodb-doublewrite",
    "--performance-schema=OFF",
)
"""A cluster's accounting must survive its own restart, not a power cut: no fsync on each commit."""


_AS_BACKUP_HOST = 'hostname "$0" && mount --bind "$1" /etc/hosts && shift && exec "$@"'


class Daemons(SlurmCommands):
    """The daemons of one cluster by name: munged-hub, munged-NODE, mariadbd, slurmdbd, slurmctld, slurmd-NODE, ..."""

    processes: dict[str, ManagedProcess]
    _ports: host.Ports

    def _launch(self, name: str, argv: Sequence[str], user: str, node: str | None = None, port: int = 0) -> None:
        running = self.processes.get(name)
        if running and running.alive():
            return
        log = self.layout.directory / "log"
        env = self.env(node) if node else self.env()
        if port:
            self._ports.release(port)
        logs = (log / f"{name}.out", log / f"{name.removeprefix('slurmd-')}.log")
        self.processes[name] = spawn(name, [*as_user(user), *argv], logs, env, self.layout.directory)
        self._save()

    def _save(self) -> None:
        self.layout.save({name: (process.pid, process.start) for name, process in self.processes.items()})

    def _start_munged(self) -> None:
        origins = {"hub": "127.0.0.1"} | {name: node.address for name, node in self.nodes.items()}
        for name, origin in origins.items():
            home = self.layout.directory / "munge"
            files = [f"--{kind}-file={home / name / kind}" for kind in ("pid", "log", "seed")]
            argv = ["munged", "-F", f"--key-file={home / 'key'}", f"--socket={home / name / 's'}", *files]
            self._launch(f"munged-{name}", [*argv, f"--origin={origin}", "--num-threads=2"], "munge")
        for name in origins:
            socket = str(self.layout.directory / "munge" / name / "s")
            self.processes[f"munged-{name}"].wait_for(lambda path=socket: host.accepts(path))  # type: ignore[misc]

    def _start_database(self) -> None:
        data = self.layout.directory / "mysql" / "data"
        if not (data / "mysql").exists():
            self._make_database(data)
        files = [f"--datadir={data}", f"--socket={self.layout.mysql_socket}", f"--pid-file={data / 'pid'}"]
        files.append(f"--tmpdir={data.parent}")  # each mariadbd removes the others' temporary tables in a shared one
        start = f"--init-file={self.layout.directory / 'etc' / 'init.sql'}"
        self._launch("mariadbd", ["mariadbd", *_MARIADB, *files, start], "mysql")
        self.processes["mariadbd"].wait_for(lambda: host.accepts(str(self.layout.mysql_socket)), 60)

    def _make_database(self, data: Path) -> None:
        """Copy an empty database, made once for each release: mariadb-install-db is half of a cluster's start."""
        release = self.run(["mariadbd", "--version"]).stdout.split()[2]
        _BUILD.mkdir(exist_ok=True)
        kept = _BUILD / f"mariadb-{release}"
        with (_BUILD / ".mariadb.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # clusters that start at the same time make it once
            if not kept.exists():
                install = ["mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}", "--skip-test-db"]
                argv = [*install, _LOG_SIZE, "--auth-root-authentication-method=socket"]
                self.run(argv, timeout_s=60, env={"TMPDIR": str(data.parent)})
                new = kept.with_name(f"{kept.name}.new")
                shutil.rmtree(new, ignore_errors=True)
                self.run(["cp", "-a", str(data), str(new)])
                new.rename(kept)
                return
        self.run(["cp", "-a", "--reflink=auto", f"{kept}/.", str(data)])

    def _start_slurmdbd(self) -> None:
        port = self.layout.ports[1]
        self._launch("slurmdbd", ["slurmdbd", "-D"], "slurm", port=port)
        self.processes["slurmdbd"].wait_for(lambda: host.accepts(("127.0.0.1", port)), 60)

    def _start_slurmrestd(self) -> None:
        port = self.layout.ports[2]
        self._launch(
            "slurmrestd",
            ["env", "SLURM_JWT=daemon", "slurmrestd", "-a", "rest_auth/jwt", f"127.0.0.1:{port}"],
            _REST_USER,
            port=port,
        )

    def _start_slurmctld(self, *options: str) -> None:
        self._launch("slurmctld", ["slurmctld", "-D", *options], "slurm", port=self.layout.ports[0])
        self.processes["slurmctld"].wait_for(self._controller_answers, 60)

    def _start_backup(self) -> None:
        """Start the backup controller as on another host: its own name, hosts file and pid file."""
        etc = self.layout.directory / "etc"
        enter = [
            "unshare",
            "--uts",
            "--mount",
            "sh",
            "-c",
            _AS_BACKUP_HOST,
            host.BACKUP_HOST,
            str(etc / "backup-hosts"),
        ]
        settings = [f"SLURM_CONF={etc / 'backup' / 'slurm.conf'}"]
        settings.append(f"GPUWASTE_CONFIG={self.layout.directory / 'site' / 'backup.toml'}")
        self._launch("slurmctld-backup", [*enter, *as_user("slurm"), "env", *settings, "slurmctld", "-D"], "root")
        self.processes["slurmctld-backup"].wait_for(lambda: "backup" in self.controllers_up(), 60)

    def controllers_up(self) -> set[str]:
        """Return which controllers answer a ping: "primary", "backup"; the backup answers also while it stands by."""
        text = self.run(["scontrol", "ping"], check=False).stdout
        return set(re.findall(r"Slurmctld\((\w+)\) at \S+ is UP", text))

    def _controller_answers(self) -> bool:
        if not host.accepts(("127.0.0.1", self.layout.ports[0])):
            return False
        try:
            return "primary" in self.controllers_up()
        except ClusterError:  # since 24.11 it lets commands wait until the backup has given up control
            return False

    def wait_saved(self, job_name: str, timeout_s: float = 30) -> None:
        """Wait until slurmctld's saved state has a job of this name: it saves up to 5 s late, and a kill loses that."""
        state = self.layout.directory / "state" / "job_state"
        wait_until(
            lambda: state.exists() and job_name.encode() + b"\0" in state.read_bytes(),
            timeout_s,
            f"{state} to have {job_name}",
        )

    def _start_slurmd(self, names: Collection[str]) -> None:
        for name in names:
            argv = [*self._cgroup_view(), "slurmd", "-D", "-N", name]
            self._launch(f"slurmd-{name}", argv, "root", name, self.nodes[name].port)
        wait_until(
            lambda: self._nodes_up(names),
            60,
            f"slurmd of {', '.join(names)} to register",
            lambda: "\n".join(self.processes[f"slurmd-{name}"].tail() for name in names),
            poll_s=SLURM_POLL_S / 2,
        )

    def _cgroup_view(self) -> list[str]:
        """Return the command that starts slurmd where cgroup v1 is not to be seen: its cgroup/v2 wants no other."""
        if not self.layout.variant.cgroup_v2:
            return []
        return ["env", f"LD_PRELOAD={build_native() / 'libgpuwaste-cgroup.so'}"]

    def _nodes_up(self, names: Collection[str]) -> bool:
        for name in names:
            if not self.processes[f"slurmd-{name}"].alive():
                raise ClusterError(f"slurmd of {name} ended\n{self.processes[f'slurmd-{name}'].tail()}")
        states = self.node_states()
        return all(states[name] in {"idle", "mixed", "allocated", "completing"} for name in names)

    def node_states(self) -> dict[str, str]:
        """Return each node's state as sinfo prints it: "idle", "mixed", "drained", "down*" ...

        Without the "-" of a node on which backfill plans a job, which it is in any state.
        """
        lines = self.run(["sinfo", "-hN", "-o", "%N %T"]).stdout.splitlines()
        return {name: state.rstrip("-") for name, state in (line.split() for line in lines)}

    def start_daemons(self, *, fresh: bool) -> None:
        """Start all that do not run; `fresh` also registers the accounts and lets slurmctld begin with no state."""
        self._start_munged()
        if not self.layout.variant.accounting:
            self._start_database()
            self._start_slurmdbd()
        if fresh:
            self.run(["sacctmgr", "-i", "load", f"file={self.layout.directory / 'etc' / 'accounts.cfg'}"], timeout_s=60)
        self._start_slurmrestd()
        self._start_slurmctld(*(["-c"] if fresh else []))
        if fresh and self.release >= _NEEDS_STATE:
            self.restart_slurmctld()  # its end saves the state that it does not save for five minutes otherwise
        if self.layout.variant.backup:
            self._start_backup()
        self._start_slurmd(self.nodes)
        port = self.layout.ports[2]
        self.processes["slurmrestd"].wait_for(lambda: host.accepts(("127.0.0.1", port)))

    def stop_daemons(self) -> None:
        """End all daemons, those that write to another one first; one that resists is killed."""
        for group in (("slurmd-", "slurmrestd", "slurmctld"), ("slurmdbd",), ("mariadbd",), ("munged-",)):
            members = [process for name, process in self.processes.items() if name.startswith(group)]
            for process in members:
                process.signal(signal.SIGTERM)
            for process in members:
                try:
                    process.wait(10)
                except ClusterError:
                    process.kill()

    def stop_slurmd(self, node: str) -> None:
        """End a node's slurmd; jobs and their slurmstepds live on, as when slurmd crashes."""
        self.processes[f"slurmd-{node}"].stop()

    def restart_slurmd(self, node: str) -> None:
        """Restart a node's slurmd (with the node's environment of now) and wait until the node is up."""
        self.stop_slurmd(node)
        self._start_slurmd([node])

    def restart_slurmctld(self) -> None:
        """Restart slurmctld, which keeps its jobs."""
        self.processes["slurmctld"].stop()
        self._start_slurmctld()

    def wait_nodes_idle(self, timeout_s: float = 30) -> None:
        """Wait until no node has a job."""
        wait_until(
            lambda: set(self.node_states().values()) == {"idle"},
            timeout_s,
            "all nodes to be idle",
            lambda: f"{self.node_states()} {self.run(['squeue', '-a']).stdout}",
            poll_s=SLURM_POLL_S,
        )

    def cancel_jobs(self) -> None:
        """Cancel all jobs and wait until the nodes are idle."""
        jobs = self.run(["squeue", "-haro", "%A"]).stdout.split()
        if jobs:
            self.run(["scancel", *jobs], check=False)
        self.wait_nodes_idle()

    def set_node_env(self, node: str, **variables: str) -> None:
        """Set variables for the node's agents, for slurmd at its next start, and for every task that starts there."""
        self.node_env_extra.setdefault(node, {}).update(variables)
        lines = "".join(f"{name}={value}\n" for name, value in self.node_env_extra[node].items())
        path = self.nodes[node].directory / "env"
        new = path.with_suffix(".new")
        new.write_text(lines, encoding="utf-8")
        new.chmod(0o644)
        new.replace(path)

    def spool_dir(self, node: str) -> Path:
        """SlurmdSpoolDir of a node."""
        return self.nodes[node].spool_dir

    def run_dir(self, node: str) -> Path:
        """Where the agent of a node has its socket and health file; owned by its user."""
        return self.nodes[node].run_dir

    def job_minors(self, node: str, job_id: int) -> list[int] | None:
        """Return the device minors that Slurm gave a job (raw id) on a node, as the prolog noted them; None before."""
        path = self.layout.directory / "sim" / node / f"{job_id}.minors"
        if not os.path.exists(path):  # noqa: PTH110
            return None
        return [int(minor) for minor in path.read_text(encoding="utf-8").strip().split(",") if minor]
