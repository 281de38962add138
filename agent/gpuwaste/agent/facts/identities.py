"""Which GPU, by UUID, is behind a device minor; what the driver once listed stays known while it is lost."""

from collections.abc import Sequence

from gpuwaste.agent.facts.base import MinorFacts
from gpuwaste.agent.model import GpuIdentity
from gpuwaste.slurm.slurmd_g import DevicePosition


class Identities:
    """UUIDs by minor of the whole GPUs, and by capability minor of the MIG instances."""

    def __init__(self) -> None:
        self._gpus: tuple[GpuIdentity, ...] = ()
        self._whole: dict[int, str] = {}
        self._instances: dict[int, str] = {}
        self._parents: dict[str, str] = {}
        self.version = 0

    def update(self, gpus: Sequence[GpuIdentity]) -> None:
        """Take the present list; a minor that it lacks keeps its GPU until another GPU has it."""
        gpus = tuple(gpus)
        if gpus == self._gpus:
            return
        self._gpus = gpus
        self.version += 1
        here = {gpu.uuid for gpu in gpus}
        for table, listed in ((self._whole, False), (self._instances, True)):
            found = {gpu.minor: gpu.uuid for gpu in gpus if bool(gpu.instance) is listed and gpu.minor is not None}
            for minor in [minor for minor, uuid in table.items() if uuid in here]:
                del table[minor]
            table.update(found)
        self._parents.update({gpu.uuid: gpu.parent_uuid for gpu in gpus if gpu.instance})

    @property
    def known(self) -> bool:
        """Whether the driver ever listed a GPU."""
        return bool(self._whole or self._instances)

    def has_instances(self, uuid: str) -> bool:
        """Tell whether a GPU is cut into MIG instances, so that its processes are theirs."""
        return uuid in self._parents.values()

    def of_device(self, device: DevicePosition) -> str | None:
        """Return the UUID behind a row of the node's list."""
        for cap in device.cap_minors:
            if cap in self._instances:
                return self._instances[cap]
        return None if device.cap_minors or device.minor is None else self._whole.get(device.minor)

    def of_minors(self, facts: MinorFacts) -> frozenset[str]:
        """Return the UUIDs behind device minors; a GPU is left out where one of its instances is meant."""
        instances = {self._instances[cap] for cap in facts.cap_minors if cap in self._instances}
        parents = {self._parents[uuid] for uuid in instances}
        return frozenset({self._whole[minor] for minor in facts.minors if minor in self._whole} - parents | instances)
