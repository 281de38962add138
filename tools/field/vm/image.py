"""Makes the disk of virtual machines: a tree with what a machine of its own needs, as a file with ext4, and its kernel.

It is made once per tree and text of these files, without a mount of it: python -m tools.field.vm.image JSON, in a mount
namespace of its own.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from tools.field import host
from tools.field.base import NAME
from tools.field.boot import ADDRESS, GPUS, RESOLVER
from tools.field.vm import qemu
from tools.matrix.table import say
from tools.trees import debian, store, view

TREE: Final = "24.11.vm"
QEMU_TREE: Final = "24.11.qemu"
RAW: Final = "disk.raw"
USED: Final = "disk-used"
"""In a machine's folder: the folder of the disk that it was begun with."""
_STAMP: Final = "complete"
_SIZE: Final = "8G"
"""The file is sparse: it takes what the tree takes."""
_MAKE_S: Final = 600.0
_PROGRAM: Final = "usr/local/sbin/field-port.py"
_GUEST: Final = Path(__file__).with_name("guest") / "port.py"
_UNITS: Final = "etc/systemd/system"
_TEXTS: Final = {
    f"{_UNITS}/field-port.service": f"""[Unit]
Description=Runs the commands of who started this machine
DefaultDependencies=no
After=sysinit.target

[Service]
ExecStart=/usr/bin/python3 -IB /{_PROGRAM} /dev/virtio-ports/{qemu.DEVICE}
Restart=always
RestartSec=1
KillMode=process
TasksMax=infinity
""",
    "etc/systemd/network/10-field.network": f"""[Match]
Name=eth0

[Network]
Address={ADDRESS}/24
LinkLocalAddressing=no
IPv6AcceptRA=no

[Route]
Destination=0.0.0.0/0
Scope=link
""",
    "etc/systemd/network/10-resolver.network": f"[Match]\nName=lo\n\n[Network]\nAddress={RESOLVER}/32\n",
    "etc/systemd/system.conf.d/field.conf": "[Manager]\nDefaultTimeoutStartSec=15min\nDefaultDeviceTimeoutSec=15min\n",
    "etc/tmpfiles.d/field.conf": "".join(f"c /dev/nvidia{n} 0666 root root - 195:{n}\n" for n in GPUS)
    + "c /dev/nvidiactl 0666 root root - 195:255\n",
    "etc/fstab": "",
}
_WANTED: Final = {"multi-user.target": ("field-port.service", "systemd-networkd.service")}
_SHIPPED: Final = "/usr/lib/systemd/system"


def made(lowers: Sequence[Path], machines: Path) -> Path:
    """Return a folder with the disk of a tree, its kernel and its initrd, made where it is not there.

    It is in the folder of the machines; a disk of another recipe is removed unless one of them uses it.
    Raises GpuwasteError.
    """
    folder = machines / f"disk-{_recipe(lowers)}"
    used = {file.read_text(encoding="utf-8") for file in machines.glob(f"*/{USED}")}
    for other in machines.glob("disk-*"):
        if other != folder and str(other) not in used:
            debian.remove_tree(other)
    stamp = folder / _STAMP
    if stamp.is_file():
        return folder
    say(f"{folder}: makes the disk of virtual machines (a minute)")
    debian.remove_tree(folder)
    folder.mkdir(parents=True)
    order = {"lowers": [str(lower) for lower in lowers], "folder": str(folder)}
    argv = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--mount", "--propagation", "private", "--"]
    argv += [sys.executable, "-m", "tools.field.vm.image", json.dumps(order)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=store.REPOSITORY, timeout=_MAKE_S, check=False)
    if done.returncode:
        raise GpuwasteError(f"field: the disk of virtual machines: {done.stderr.strip()[-2000:]}")
    stamp.touch()
    return folder


def _recipe(lowers: Sequence[Path]) -> str:
    """Return what names a disk: its tree, and all that is written into it."""
    own = [_GUEST.read_text(encoding="utf-8"), json.dumps([_TEXTS, _WANTED, _SIZE]), NAME]
    own += [Path(module).read_text(encoding="utf-8") for module in (__file__, host.__file__)]
    tree = [stamp.read_text(encoding="utf-8") for lower in lowers for stamp in _stamps(lower) if stamp.is_file()]
    return hashlib.sha256(json.dumps([own, tree]).encode()).hexdigest()[:16]


def _stamps(lower: Path) -> tuple[Path, Path]:
    return lower / debian.BASE_STAMP, lower.parent / debian.LAYER_STAMP


def main() -> None:
    """Make the disk that made() asks for."""
    order = json.loads(sys.argv[1])
    folder = Path(order["folder"])
    tree, upper, work, out = (folder / name for name in ("tree", "upper", "work", "out"))
    for new in (tree, upper, work, out):
        new.mkdir()
    try:
        debian.overlay([Path(lower) for lower in order["lowers"]], upper, work, tree)
        _furnish(tree)
        for name, kind in (("vmlinuz", "vmlinuz"), ("initrd", "initrd.img")):
            shutil.copyfile(_newest(tree / "boot", kind), folder / name)
        argv = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-E", "root_owner=0:0"]
        view.run(
            QEMU_TREE, [*argv, "-d", str(tree), str(out / RAW), _SIZE], timeout_s=_MAKE_S, readable=[tree],
            writable=[out],
        )  # fmt: skip
    except GpuwasteError as error:
        sys.exit(str(error))
    subprocess.run(["umount", str(tree)], check=True, timeout=60)
    (out / RAW).rename(folder / RAW)
    for done in (tree, upper, work, out):
        shutil.rmtree(done)


def _furnish(tree: Path) -> None:
    host.prepare(tree, NAME, ADDRESS, RESOLVER)
    for name, text in _TEXTS.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    shutil.copyfile(_GUEST, tree / _PROGRAM)
    for target, units in _WANTED.items():
        wants = tree / _UNITS / f"{target}.wants"
        wants.mkdir(exist_ok=True)
        for unit in units:
            own = tree / _UNITS / unit
            (wants / unit).unlink(missing_ok=True)
            (wants / unit).symlink_to(f"/{_UNITS}/{unit}" if own.exists() else f"{_SHIPPED}/{unit}")


def _newest(boot: Path, kind: str) -> Path:
    found = sorted(boot.glob(f"{kind}-*"))
    if not found:
        raise GpuwasteError(f"field: no {kind} in the tree {TREE}: remove it, and it is made anew")
    return found[-1]


if __name__ == "__main__":
    main()
