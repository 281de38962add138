"""Becomes a machine: joins its cgroup, enters namespaces of its own, mounts what an init needs, becomes that init.

Nothing of this host is mounted in the machine but its own overlay and its console's file, and it ends with its
parent: `python -m tools.field.boot JSON`, called by machine.py.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tools.field import host
from tools.trees import debian

ADDRESS: Final = "10.99.0.1"
RESOLVER: Final = "10.99.0.53"
"""Where a watch answers questions of DNS; see watch.py."""
_ADDRESS6: Final = "fd00:99::1"
LINK: Final = "field0"
GPUS: Final = range(4)
_NVIDIA: Final = 195
_CONTROL: Final = 255
_NODES: Final = {
    "null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0),
    **{f"nvidia{minor}": (_NVIDIA, minor) for minor in GPUS}, "nvidiactl": (_NVIDIA, _CONTROL),
}  # fmt: skip
_LINKS: Final = {
    "ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2",
}  # fmt: skip
_SAFE: Final = "nosuid,nodev"
_MOUNTS: Final = (
    ("proc", f"{_SAFE},noexec", "proc"),
    ("sysfs", f"{_SAFE},noexec", "sys"),
    ("cgroup2", f"{_SAFE},noexec", "sys/fs/cgroup"),
    ("tmpfs", f"mode=755,{_SAFE}", "run"),
    ("tmpfs", f"mode=1777,{_SAFE}", "tmp"),
    ("tmpfs", "mode=755,nosuid", "dev"),
    ("devpts", "newinstance,ptmxmode=0666,mode=620,gid=5", "dev/pts"),
    ("tmpfs", "mode=1777", "dev/shm"),
)
_TAKEN: Final = "sys_module,sys_rawio,sys_time,syslog,wake_alarm,mac_admin,mac_override"
"""Capabilities that would reach this host's kernel."""
_NETWORK: Final = (
    "link set lo up",
    f"link add {LINK} type veth peer name {LINK}p",
    f"link set {LINK} arp off",
    f"link set {LINK}p arp off up",
    f"address add {ADDRESS}/24 dev {LINK}",
    f"address add {RESOLVER}/32 dev lo",
    f"link set {LINK} up",
    f"address add {_ADDRESS6}/64 dev {LINK} nodad",
    f"route add default dev {LINK}",
    f"-6 route add default dev {LINK}",
)
"""A link that leads nowhere, and all addresses behind it: what is sent to elsewhere is sent, and can be seen."""


def main() -> None:
    """Join the cgroup and enter the namespaces, then, in them, become the init."""
    order = json.loads(sys.argv[1])
    if not order.get("inside"):
        Path(order["cgroup"], "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        spaces = ["--cgroup", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
        net = order.get("net")  # a network namespace that is there already, with its links
        entered, own = (["nsenter", f"--net={net}", "--"], []) if net else ([], ["--net"])
        argv = [*entered, "unshare", "--propagation", "private", *spaces, *own, "--", sys.executable, "-m"]
        argv.append("tools.field.boot")
        os.execvp(argv[0], [*argv, json.dumps(order | {"inside": True})])  # noqa: S606 becoming it is the point
    _become(order)


def _become(order: dict[str, Any]) -> None:
    folder = Path(order["folder"])
    root, work = folder / "root", folder / "work"
    for new in (root, work, folder / "upper"):
        new.mkdir(exist_ok=True)
    lowers = [Path(lower) for lower in order["lowers"]]
    debian.overlay(lowers, folder / "upper", work, root, volatile=True)
    host.prepare(root, order["name"], order.get("address", ADDRESS), RESOLVER)
    for kind, options, where in _MOUNTS:
        (root / where).mkdir(exist_ok=True)
        _do("mount", "-t", kind, "-o", options, kind, str(root / where))
    _devices(root / "dev", folder / "console.log")
    _do("mount", "--bind", str(root / "proc/sys"), str(root / "proc/sys"))
    _do("mount", "-o", "remount,bind,ro", str(root / "proc/sys"))
    _do("mount", "-o", "remount,bind,ro", str(root / "sys"))
    _do("hostname", order["name"])
    for words in () if order.get("net") else _NETWORK:
        _do("ip", *words.split())
    if "shared" in order:
        _do("mount", "--bind", order["shared"], str(root / "srv"))
    os.chdir(root)
    Path(".old").mkdir(exist_ok=True)
    _do("pivot_root", ".", ".old")
    os.chdir("/")
    _init()


def _devices(dev: Path, console: Path) -> None:
    os.umask(0)
    for name, (major, minor) in _NODES.items():
        os.mknod(dev / name, 0o020666, os.makedev(major, minor))
    for name, target in _LINKS.items():
        (dev / name).symlink_to(target)
    os.umask(0o022)
    for path in (console, dev / "console"):
        path.touch()
    _do("mount", "--bind", str(console), str(dev / "console"))


def _init() -> None:
    """Drop this host's files and become the machine's own init; its output goes to the console's file."""
    with Path("/dev/console").open("ab", buffering=0) as console, Path("/dev/null").open("rb") as nothing:
        for number, file in enumerate((nothing, console, console)):
            os.dup2(file.fileno(), number)
    script = "umount -l /.old; rmdir /.old; exec /sbin/init"
    argv = ["setpriv", f"--bounding-set=-{_TAKEN.replace(',', ',-')}", "sh", "-c", script]
    os.execve("/usr/bin/setpriv", argv, {"container": "field", "PATH": debian.PATH})  # noqa: S606 becoming it


def _do(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        sys.exit(f"field: {' '.join(argv)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
