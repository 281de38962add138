"""What a loopback cluster needs of its host and the little it leaves there: packages, users, ports, cgroups."""

import contextlib
import os
import pwd
import random
import shutil
import socket
import stat
import subprocess
from pathlib import Path

from gpuwaste.testing.cluster_process import ClusterError
from gpuwaste.testing.patience import patient

USERS = ("alice", "bob", "carol", "dave")
AGENT_USER = "gpuwaste"
COMMANDS = (
    "munged", "munge", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "slurmrestd", "sacctmgr",
    "scontrol", "sbatch", "sacct", "setpriv",
)  # fmt: skip
BACKUP_HOST = "gwbackup"
"""Host name of a backup controller, in a UTS namespace of its own."""
MAX_PATH = 60
"""Longest cluster directory, bytes: slurmstepd's sockets below it must fit the 107 of a Unix socket."""
_CGROUPS = Path("/sys/fs/cgroup")


def search_path(user: str = "root") -> str:
    """Return PATH with the sbin folders, where daemons live and a user's shell may not look.

    For others than root without the folders that only root may enter: setpriv still finds a script there, and its shell
    cannot read it.
    """
    parts = os.environ.get("PATH", "").split(":")
    parts += [folder for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin") if folder not in parts]
    return ":".join(folder for folder in parts if user == "root" or _is_open(Path(folder)))


def _is_open(folder: Path) -> bool:
    try:
        return all(one.stat().st_mode & stat.S_IXOTH for one in (folder, *folder.parents))
    except OSError:
        return False


def missing(path: str | None = None, uid: int | None = None) -> str | None:
    """Say in one line why no cluster can run on this host (`path` and `uid` for ours); None when it can."""
    if (os.geteuid() if uid is None else uid) != 0:
        return "a Slurm cluster on loopback needs root (daemons of several users, device nodes)"
    absent = [command for command in COMMANDS if shutil.which(command, path=path or search_path()) is None]
    if absent:
        return f"not installed: {', '.join(absent)}; run tools/install-debian-packages (Debian 12)"
    return None


def cgroup_v1_devices() -> bool:
    """Tell whether the host has the cgroup v1 controllers that Slurm's ConstrainDevices needs."""
    return all((_CGROUPS / controller / "tasks").exists() for controller in ("devices", "freezer", "cpuset"))


def cgroup_v2() -> Path | None:
    """Return where the unified hierarchy is mounted; None where it is not."""
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(place)
    return None


def short_name() -> str:
    """Return the host's name as Slurm compares it."""
    return socket.gethostname().partition(".")[0]


def add_users() -> None:
    """Create the cluster's Unix users where they are missing; they stay, and have no home of their own."""
    for name in (*USERS, AGENT_USER):
        with contextlib.suppress(KeyError):
            pwd.getpwnam(name)
            continue
        options = ["--system"] if name == AGENT_USER else []
        argv = ["useradd", *options, "--user-group", "--no-create-home", "--home-dir", "/nonexistent", name]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=patient(30), check=False)
        try:
            pwd.getpwnam(name)  # a cluster that starts beside this one may have been faster
        except KeyError:
            raise ClusterError(f"cannot create the user {name}: {done.stderr.strip()}") from None


class Ports:
    """Free TCP ports below the ephemeral range, each held by a bound socket until its daemon starts."""

    def __init__(self, count: int) -> None:
        self._sockets: dict[int, socket.socket] = {}
        draw = random.SystemRandom()
        while len(self._sockets) < count:
            port = draw.randrange(20000, 32000)
            probe = socket.socket()
            try:
                probe.bind(("", port))
                self._sockets[port] = probe
            except OSError:
                probe.close()
        self.numbers = list(self._sockets)

    def release(self, port: int) -> None:
        """Free one port for the daemon that starts now."""
        if port in self._sockets:
            self._sockets.pop(port).close()

    def close(self) -> None:
        """Free all ports that are still held."""
        for port in list(self._sockets):
            self.release(port)


def accepts(address: str | tuple[str, int]) -> bool:
    """Tell whether something accepts connections at a Unix path or a (host, port)."""
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as probe:
        probe.settimeout(2)
        return probe.connect_ex(address) == 0


def cgroups_of(nodes: list[str]) -> list[Path]:
    """Return the cgroup folders that Slurm makes for these nodes, of v1 and v2, the deepest first."""
    patterns = ("*/slurm_{}", "system.slice/{}_slurmstepd.scope", "unified/system.slice/{}_slurmstepd.scope")
    tops = [top for name in nodes for pattern in patterns for top in _CGROUPS.glob(pattern.format(name))]
    below = [path for top in tops for path in top.rglob("*") if path.is_dir()]
    return sorted({*tops, *below}, key=lambda path: -len(path.parts))


def remove_cgroups(nodes: list[str]) -> None:
    """Remove the cgroups of these nodes; a cgroup that still has a process stays and is seen by `cgroups_of`."""
    for path in cgroups_of(nodes):
        with contextlib.suppress(OSError):
            path.rmdir()
