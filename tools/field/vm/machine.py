"""A virtual machine of the field, with the questions of any other: started, asked, restarted, ended.

qemu dies with the process that started it, unless that one says that it is kept.
"""

import contextlib
import os
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster_process import start_ticks, wait_until
from tools.field.base import RUN_S, AnyMachine
from tools.field.vm import image, packets, port, qemu
from tools.trees import store, view

PACE: Final = 15.0
"""7 to 14 times slower than this host where nothing else runs."""
STRETCH: Final = 6
_BOOT_S: Final = 60.0
_END_S: Final = 30.0
_PARCEL_B: Final = 1 << 30
_PARCEL_DEVICE: Final = "/dev/vdb"


class VirtualMachine(AnyMachine):
    """A virtual machine whose disk and sockets are in `folder`."""

    complete = True
    pace = PACE
    stretch = STRETCH

    def __init__(self, folder: Path, disk: Path, *, kept: bool = False) -> None:
        self.folder = folder
        self.disk = disk
        """A folder with the disk that it starts with, and its kernel."""
        self.kept = kept
        self.cpus = qemu.CPUS
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The number of the process on this host that ends with qemu and ends it, 0 where none runs."""
        try:
            pid, ticks = (self.folder / "pid").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            return 0
        return int(pid) if start_ticks(int(pid)) == int(ticks) else 0

    def boot(self, lowers: Sequence[Path]) -> None:
        """Start it on its disk, a new one where it has none; return when its init has started all.

        `lowers` is the tree of qemu. Raises GpuwasteError.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / qemu.PORT).unlink(missing_ok=True)
        self._make_disks(lowers)
        self._start(lowers)
        wait_until(self._answers, _BOOT_S * self.pace, "the virtual machine to answer", self._words, poll_s=1)
        words = ("running", "degraded")
        self.wait("systemctl is-system-running || :", _BOOT_S, "systemd to have started all", wanted=words, poll_s=2)

    def _make_disks(self, lowers: Sequence[Path]) -> None:
        with (self.folder / qemu.PARCEL).open("wb") as parcel:
            parcel.truncate(_PARCEL_B)
        if not (self.folder / qemu.DISK).exists():
            backing = ["-b", str(self.disk / image.RAW), "-F", "raw", str(self.folder / qemu.DISK)]
            self._in_tree(lowers, ["qemu-img", "create", "-q", "-f", "qcow2", *backing])
            (self.folder / image.USED).write_text(str(self.disk), encoding="utf-8")

    def _in_tree(self, lowers: Sequence[Path], argv: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory(prefix="gwview") as place:
            inside = view.command(lowers, Path(place), argv, readable=[self.disk], writable=[self.folder])
            done = subprocess.run(inside, capture_output=True, text=True, cwd=store.REPOSITORY, timeout=60, check=False)
        if done.returncode:
            raise GpuwasteError(f"field: {argv[0]}: {done.stderr.strip()[-1000:]}")

    def _start(self, lowers: Sequence[Path]) -> None:
        place = self.folder / "place"
        place.mkdir(exist_ok=True)
        argv = qemu.command(self.folder, self.disk)
        argv = view.command(lowers, place, argv, readable=[self.disk], writable=[self.folder])
        if not self.kept:
            argv = ["setpriv", "--pdeathsig", "KILL", "--", *argv]
        with (self.folder / "qemu.log").open("wb") as log:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=store.REPOSITORY,
                start_new_session=self.kept,
            )  # fmt: skip
        pid = self._process.pid
        (self.folder / "pid").write_text(f"{pid} {start_ticks(pid)}", encoding="ascii")

    def _answers(self) -> bool:
        if not self.pid:
            raise GpuwasteError(f"field: the virtual machine did not start: {self._words()}")
        with contextlib.suppress(GpuwasteError):
            return port.ask(self.folder / qemu.PORT, ["true"], 0).returncode == 0
        return False

    def _words(self) -> str:
        files = [self.folder / "qemu.log", self.folder / "console.log"]
        return "\n".join(file.read_text(encoding="utf-8", errors="replace")[-1000:] for file in files if file.exists())

    def try_run(self, script: str, *, user: str = "root", timeout_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
        """Run a shell script as a user; after `timeout_s` it is killed, with exit status 124 or 137."""
        if not self.pid:
            raise GpuwasteError(f"field: the virtual machine in {self.folder} does not run: {self._words()}")
        limit_s = timeout_s * self.pace
        return port.ask(self.folder / qemu.PORT, self.words(script, user, limit_s), limit_s)

    def put(self, source: Path, name: str) -> None:
        """Copy a file or a folder of this host into the machine, to the path `name`, with its modes.

        It goes as an archive in a disk of its own: the port is slow. Raises GpuwasteError where it is larger than that.
        """
        with (self.folder / qemu.PARCEL).open("r+b") as parcel:
            with tarfile.open(fileobj=parcel, mode="w", format=tarfile.GNU_FORMAT, dereference=False) as archive:
                archive.add(source, name.lstrip("/"), filter=_of_root)
            if parcel.tell() > _PARCEL_B:
                raise GpuwasteError(f"field: {source} has more than {_PARCEL_B >> 20} MiB")
        self.run(f"blockdev --flushbufs {_PARCEL_DEVICE}\ntar -x -p -C / -f {_PARCEL_DEVICE}")

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the machine."""
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="gwfield") as file:
            file.write(text)
            file.flush()
            os.chmod(file.name, mode)  # noqa: PTH101 the name of a file that is open
            self.put(Path(file.name), name)

    def heard(self) -> list[str]:
        """Return what left the machine since it was started last. Raises GpuwasteError."""
        return packets.told(self.folder / qemu.PACKETS)

    def reboot(self, lowers: Sequence[Path]) -> None:
        """Shut it down in good order, as a sysadmin does, and start it again. Raises GpuwasteError."""
        self.shut()
        self.boot(lowers)

    def shut(self) -> None:
        """Shut it down in good order, so that its disk can be used again. Raises GpuwasteError."""
        self.try_run("systemctl --no-block poweroff")
        wait_until(lambda: not self.pid, _BOOT_S * self.pace, "the virtual machine to shut down", self._words, poll_s=1)
        self.down()

    def down(self) -> None:
        """End it at once, as by a loss of power: its disk may then be of no use. Raises GpuwasteError."""
        deadline = time.monotonic() + _END_S
        while pid := self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise GpuwasteError(f"field: process {pid} of {self.folder} does not end")
            time.sleep(0.05)
        if self._process is not None:
            self._process.wait(timeout=_END_S)
        self._process = None
        (self.folder / "pid").unlink(missing_ok=True)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
