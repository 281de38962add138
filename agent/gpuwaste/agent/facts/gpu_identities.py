"""Which GPU, by UUID, is behind a device file, and which device is behind a position of `slurmd -G`.

`slurmd -G` reads the configuration on disk, which the running slurmd may not have loaded yet. So where a new reading
differs, its positions are doubtful until slurmd is restarted: they resolve to no device.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from gpuwaste.agent.facts.run_facts import MinorFacts
from gpuwaste.agent.readings import GpuIdentity
from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.formats.gpu_positions import NVIDIA_MAJOR, DeviceNode, DevicePosition

_K = TypeVar("_K")
Signature = tuple[tuple[int, int] | None, ...]


class Identities:
    """UUIDs by device number of GPUs and of partitions with a device file, by capability minor of MIG instances."""

    def __init__(self) -> None:
        self._gpus: tuple[GpuIdentity, ...] = ()
        self._whole: dict[DeviceNode, str] = {}
        self._instances: dict[int, str] = {}
        self._parents: dict[str, str] = {}
        self.version = 0

    def update(self, gpus: Sequence[GpuIdentity]) -> None:
        """Use the current list; a device that is not in it keeps its GPU until another GPU has it."""
        gpus = tuple(gpus)
        if gpus == self._gpus:
            return
        self._gpus = gpus
        self.version += 1
        here = {gpu.uuid for gpu in gpus}
        _renew(self._whole, here, ((node, gpu.uuid) for gpu in gpus for node in gpu.device_nodes))
        caps = (gpu for gpu in gpus if gpu.instance and not gpu.nodes)
        _renew(self._instances, here, ((gpu.minor, gpu.uuid) for gpu in caps if gpu.minor is not None))
        self._parents.update({gpu.uuid: gpu.parent_uuid for gpu in gpus if gpu.instance})

    @property
    def known(self) -> bool:
        """Whether the driver ever listed a GPU."""
        return bool(self._whole or self._instances)

    def has_instances(self, uuid: str) -> bool:
        """Return whether a GPU is partitioned into instances, so that its processes belong to these."""
        return uuid in self._parents.values()

    def of_device(self, device: DevicePosition) -> str | None:
        """Return the UUID behind a row of the node's list."""
        for cap in device.cap_minors:
            if cap in self._instances:
                return self._instances[cap]
        return None if device.cap_minors or device.node is None else self._whole.get(device.node)

    def of_minors(self, facts: MinorFacts) -> frozenset[str]:
        """Return the UUIDs behind device numbers; a GPU is left out where one of its instances is listed."""
        instances = {self._instances[cap] for cap in facts.cap_minors if cap in self._instances}
        nodes = {DeviceNode(NVIDIA_MAJOR, minor) for minor in facts.minors} | facts.others
        whole = {self._whole[node] for node in nodes if node in self._whole}
        parents = {self._parents[uuid] for uuid in instances}
        return frozenset(whole - parents | instances)


def _renew(table: dict[_K, str], here: set[str], found: Iterable[tuple[_K, str]]) -> None:
    """Replace the entries of the listed GPUs; an entry of another GPU stays until its key is reused."""
    for key in [key for key, uuid in table.items() if uuid in here]:
        del table[key]
    table.update(found)


class PositionTable:
    """The node's device list. `check` may block and is for one background thread; the rest is thread-safe."""

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
        """Return whether the configuration changed under the running slurmd: the position may mean another device."""
        return position in self._doubtful

    def check(self) -> None:
        """Read the list if it may have changed. A failure leaves the list unchanged, with the reason in `health`."""
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
