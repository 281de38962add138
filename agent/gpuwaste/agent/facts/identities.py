"""Which GPU, by UUID, is behind a device file; what the driver once listed stays known while it is lost."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from gpuwaste.agent.facts.base import MinorFacts
from gpuwaste.agent.model import GpuIdentity
from gpuwaste.slurm.formats.slurmd_g import NVIDIA_MAJOR, DeviceNode, DevicePosition

_K = TypeVar("_K")


class Identities:
    """UUIDs by device number of GPUs and of partitions with a device file, by capability minor of MIG instances."""

    def __init__(self) -> None:
        self._gpus: tuple[GpuIdentity, ...] = ()
        self._whole: dict[DeviceNode, str] = {}
        self._instances: dict[int, str] = {}
        self._parents: dict[str, str] = {}
        self.version = 0

    def update(self, gpus: Sequence[GpuIdentity]) -> None:
        """Take the present list; a device that it lacks keeps its GPU until another GPU has it."""
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
        """Tell whether a GPU is cut into instances, so that its processes are theirs."""
        return uuid in self._parents.values()

    def of_device(self, device: DevicePosition) -> str | None:
        """Return the UUID behind a row of the node's list."""
        for cap in device.cap_minors:
            if cap in self._instances:
                return self._instances[cap]
        return None if device.cap_minors or device.node is None else self._whole.get(device.node)

    def of_minors(self, facts: MinorFacts) -> frozenset[str]:
        """Return the UUIDs behind device numbers; a GPU is left out where one of its instances is meant."""
        instances = {self._instances[cap] for cap in facts.cap_minors if cap in self._instances}
        nodes = {DeviceNode(NVIDIA_MAJOR, minor) for minor in facts.minors} | facts.others
        whole = {self._whole[node] for node in nodes if node in self._whole}
        parents = {self._parents[uuid] for uuid in instances}
        return frozenset(whole - parents | instances)


def _renew(table: dict[_K, str], here: set[str], found: Iterable[tuple[_K, str]]) -> None:
    """Replace what the table has of the GPUs that are here; what is gone stays until its key is taken."""
    for key in [key for key, uuid in table.items() if uuid in here]:
        del table[key]
    table.update(found)
