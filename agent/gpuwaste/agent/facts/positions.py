"""Positions to devices: the rows of `slurmd -G -N NODE`, read off the sampling thread and again when they may change.

`slurmd -G` reads the configuration as it lies on disk, which the running slurmd may not have taken up yet. So where a
new reading differs, its positions are doubtful until slurmd has been started again: they resolve to no device.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.formats.slurmd_g import DevicePosition

Signature = tuple[tuple[int, int] | None, ...]


class PositionTable:
    """The node's device list. `check` may block and is called from one background thread; all else is for any."""

    def __init__(
        self, read: Callable[[], list[DevicePosition]], watched: Sequence[Path] = (), slurmd_pid: Path | None = None
    ) -> None:
        self._read = read
        self._watched = watched
        self._slurmd = (slurmd_pid,) if slurmd_pid is not None else ()
        self._signature: Signature | None = None
        self._started: Signature = ()
        self._devices: tuple[DevicePosition, ...] = ()
        self._doubtful: frozenset[int] = frozenset()
        self.loaded = False
        self.health = "slurmd -G was not read yet"

    @property
    def size(self) -> int:
        """How many GPUs Slurm has on this node."""
        return len(self._devices)

    @property
    def shared(self) -> bool:
        """Whether jobs may hold parts of GPUs here."""
        return any(device.shards for device in self._devices)

    def device(self, position: int) -> DevicePosition | None:
        """Return the device at a position, None where the list has none."""
        devices = self._devices
        return devices[position] if 0 <= position < len(devices) else None

    def is_doubtful(self, position: int) -> bool:
        """Tell whether the configuration changed under the running slurmd, so that the position may mean another."""
        return position in self._doubtful

    def check(self) -> None:
        """Read the list if it may have changed. A failure leaves the list as it was, and `health` says why."""
        signature, started = _signature(self._watched), _signature(self._slurmd)
        if self.loaded and (signature, started) == (self._signature, self._started):
            return
        try:
            devices = tuple(self._read())
        except GpuwasteError as error:
            self.health = str(error)
            return
        if self.loaded and self._slurmd and started == self._started:
            self._doubtful |= _differing(self._devices, devices)
        else:
            self._doubtful = frozenset()
            self._devices = devices
        self._signature, self._started = signature, started
        self.loaded, self.health = True, ""


def _differing(old: Sequence[DevicePosition], new: Sequence[DevicePosition]) -> frozenset[int]:
    longer = max(len(old), len(new))
    pairs = ((old[at : at + 1], new[at : at + 1]) for at in range(longer))
    return frozenset(at for at, (one, other) in enumerate(pairs) if tuple(one) != tuple(other))


def _signature(paths: Sequence[Path]) -> Signature:
    found: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_ino))
    return tuple(found)
