"""A host of its own on this one: a Debian root in namespaces of its own, booted, with a whole Slurm site and dnf in it.

Its processes, network (loopback alone), host name and mounts end with it. What is not there in truth: systemd, which
systemctl_shim stands in for; a GPU, whose driver's library is the simulated one; and RPMs of bash, Python, glibc,
shadow-utils and Slurm, since Debian brought those: empty packages of these names and versions stand in rpm's database.
"""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.rpm.root import Root

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.patience import patient
from gpuwaste.testing.simnvml import SimNode, make_gpus

NAME: Final = "admin1"
ADDRESS: Final = "10.1.0.1"
SLURM: Final = "22.05.8"
GPUS: Final = (0, 1)
SIM: Final = "/srv/sim"
_SHIM: Final = Path(__file__).with_name("systemctl_shim.py")
_FILES: Final = Path(__file__).with_name("machine")
_GLIBC: Final = ("2.2.5", "2.3", "2.3.2", "2.3.3", "2.3.4", *(f"2.{minor}" for minor in range(4, 37)))
"""What Debian 12's glibc provides on x86_64, by the versions of its symbols; some minors are none and harm nothing."""
_BOOT: Final = """
hostname "$2"
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
exec chroot "$1" python3.11 -IBc "$3" "$4"
"""
_INIT: Final = """
import fcntl, os, signal, socket, struct, sys
with socket.socket() as probe:
    fcntl.ioctl(probe, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
    own = struct.pack("16sH2x4s8x", b"lo:1", socket.AF_INET, socket.inet_aton(sys.argv[1]))
    fcntl.ioctl(probe, 0x8916, own)  # SIOCSIFADDR
def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
signal.signal(signal.SIGCHLD, reap)
print("up", flush=True)
sys.stdin.read()
"""
"""Process 1: brings loopback up with the host's address on it (glibc looks for one beside 127.0.0.1), takes the exit
status of orphans, and ends, with all others, when its stdin closes."""


def stand_in(folder: Path, name: str, version: str, provides: Sequence[str] = (), requires: Sequence[str] = ()) -> Path:
    """Build an empty package that says what is there without rpm's knowledge."""
    spec = folder / f"{name}-{version}.spec"
    lines = [f"Name: {name}", f"Version: {version}", "Release: 1", "Summary: stands in", "License: none"]
    lines += ["BuildArch: noarch", "AutoReqProv: no", *(f"Provides: {one}" for one in provides)]
    lines += [*(f"Requires: {one}" for one in requires), "%description", "Stands in for what Debian brought.", "%files"]
    spec.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run(
        ["rpmbuild", "-bb", "--define", f"_topdir {folder}", str(spec)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise GpuwasteError(f"rpmbuild of {spec}: {done.stderr[-2000:]}")
    return folder / "RPMS" / "noarch" / f"{name}-{version}-1.noarch.rpm"


def debian_as_rpms(folder: Path) -> list[Path]:
    """Return what rpm is told of Debian: the packages that ours require on Enterprise Linux."""
    glibc = ["rtld(GNU_HASH)", "libc.so.6()(64bit)"]
    glibc += [f"libc.so.6(GLIBC_{version})(64bit)" for version in _GLIBC]
    return [
        stand_in(folder, "glibc", "2.36", glibc),
        stand_in(folder, "bash", "5.2", ["/bin/sh"]),
        stand_in(folder, "python3.11", "3.11.2", ["/usr/bin/python3.11"]),
        stand_in(folder, "shadow-utils", "4.13"),
        stand_in(folder, "slurm", SLURM),
    ]


@dataclass
class Machine:
    """The running host."""

    root: Root
    pid: int
    """Its process 1, as this host counts."""
    env: dict[str, str] = field(default_factory=dict)

    def run(self, script: str, *, user: str = "root", check: bool = True, cwd: str = "/") -> str:
        """Run a shell script, which ends at the first failure; return what it wrote. Raises GpuwasteError."""
        done = self.try_run(script, user=user, cwd=cwd)
        if check and done.returncode:
            raise GpuwasteError(f"{script}\nexited with {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def try_run(self, script: str, *, user: str = "root", cwd: str = "/") -> subprocess.CompletedProcess[str]:
        """Run a shell script as a user."""
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--uts", "--ipc", "--root", "--wd"]
        change = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user != "root" else []
        whole = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", **self.env}
        return subprocess.run(
            [*enter, *change, "sh", "-ec", f"cd {cwd}\n{script}"],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env=whole,
            timeout=patient(300),
        )

    def wait(
        self, script: str, timeout_s: float, what: str, *, user: str = "root", wanted: str = "", poll_s: float = 0.5
    ) -> str:
        """Run a script again and again until it succeeds and says what is wanted; return what it wrote."""
        said = subprocess.CompletedProcess[str]([], 1, "", "")

        def done() -> bool:
            nonlocal said
            said = self.try_run(script, user=user)
            return said.returncode == 0 and wanted in said.stdout

        wait_until(done, timeout_s, what, lambda: f"{said.stdout}{said.stderr}", poll_s=poll_s)
        return said.stdout


@contextmanager
def booted(root: Root) -> Iterator[Machine]:
    """Boot a root; everything in it ends at the exit."""
    spaces = ["--pid", "--mount", "--net", "--uts", "--ipc"]
    argv = [
        "unshare",
        "--fork",
        "--kill-child",
        *spaces,
        "--",
        "sh",
        "-ec",
        _BOOT,
        "boot",
        str(root.path),
        NAME,
        _INIT,
        ADDRESS,
    ]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            if not process.stdout or process.stdout.readline() != "up\n":
                raise GpuwasteError(f"{root.path} does not boot: it exited with {process.wait()}")
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
            yield Machine(root, int(children.split()[0]))
        finally:
            if process.stdin:
                process.stdin.close()
            process.wait(60)


def furnish(root: Root, native: Path, folder: Path) -> None:
    """Make a root a Slurm site before anything of ours: its configuration, users, GPUs, and rpm's view of it."""
    for path in sorted(_FILES.rglob("*")):
        if path.is_file():
            root.write(f"/{path.relative_to(_FILES)}", path.read_text(encoding="utf-8"))
    root.file("/usr/bin/systemctl").write_bytes(_SHIM.read_bytes())
    root.file("/usr/bin/systemctl").chmod(0o755)
    root.file("/run/systemd/system").mkdir(parents=True)
    for minor in GPUS:
        root.run("mknod", "-m", "666", f"/dev/nvidia{minor}", "c", "195", str(minor))
    SimNode.create(root.file(SIM), make_gpus(GPUS))
    for name, target in (("libnvidia-ml.so.1", "/usr/lib/x86_64-linux-gnu"), ("gpuwaste-load", "/usr/local/bin")):
        root.file(target).joinpath(name).write_bytes((native / name).read_bytes())
        root.file(target).joinpath(name).chmod(0o755)
    # Where a driver's state is the kernel's, the simulated one is a folder that its library is told of.
    root.write("/etc/gpuwaste/environment", f"GPUWASTE_SIM_DIR={SIM}\n")
    root.run("sh", "-ec", root.file("/srv/furnish.sh").read_text(encoding="utf-8"))
    root.rpm("-i", "--nosignature", *debian_as_rpms(folder))


def start_site(machine: Machine) -> None:
    """Start the site's own daemons, and register its accounts."""
    machine.env["GPUWASTE_SIM_DIR"] = SIM
    machine.run("mariadb-install-db --no-defaults --user=mysql --datadir=/var/lib/mysql --skip-test-db")
    machine.run("systemctl start munge mariadb")
    machine.wait("test -S /run/mysqld/mysqld.sock", 60, "MariaDB")
    machine.run("systemctl start slurmdbd")
    machine.wait("bash -c ': </dev/tcp/127.0.0.1/6819'", 60, "slurmdbd")
    machine.run("sacctmgr -i add cluster site && sacctmgr -i add account physics")
    machine.run("sacctmgr -i add user alice account=physics")
    machine.run("systemctl start slurmctld slurmd")
    machine.wait("sinfo -h -o %T", 60, "the node to be idle", wanted="idle")
