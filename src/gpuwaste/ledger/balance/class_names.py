"""Names of the classes of the balance for readers, and what each means."""

from collections.abc import Mapping
from typing import Final

from gpuwaste.ledger.balance.types import BalanceClass, Devices

CLASS_NAMES: Final[Mapping[BalanceClass, str]] = {
    BalanceClass.ALLOCATED: "allocated",
    BalanceClass.FREE_MEMORY: "memory of the node taken",
    BalanceClass.FREE_CPUS: "CPUs of the node taken",
    BalanceClass.FREE_FEW_GPUS: "too few GPUs on one node",
    BalanceClass.FREE_OTHER_TYPE: "other GPU type requested",
    BalanceClass.FREE_LIMIT: "limit of QOS, association or partition",
    BalanceClass.FREE_PLANNED: "kept for a larger job",
    BalanceClass.FREE_CYCLE: "scheduling cycle",
    BalanceClass.FREE_UNKNOWN: "cause unknown",
    BalanceClass.FREE: "free, no job waits",
    BalanceClass.RESERVED: "reserved, not used",
    BalanceClass.MAINTENANCE: "maintenance",
    BalanceClass.DRAINED: "drained",
    BalanceClass.DOWN: "down",
    BalanceClass.NOT_KNOWN: "not known",
}
"""In the order of tables and charts; those from memory to cause unknown are GPUs that are free although jobs wait."""


def class_name(of: BalanceClass, devices: Devices) -> str:
    """Return the name of a class where GPUs, or CPUs, are counted."""
    name = CLASS_NAMES[of]
    return name.replace("GPUs on one node", "CPUs free") if devices == "CPUs" else name


WAITED_FOR: Final = tuple(of for of in CLASS_NAMES if of.value.startswith("free_"))
CLASS_MEANS: Final[Mapping[BalanceClass, str]] = {
    BalanceClass.ALLOCATED: "a job holds the GPU",
    BalanceClass.FREE_MEMORY: "a job waits that would fit if the node had memory left",
    BalanceClass.FREE_CPUS: "a job waits that would fit if the node had CPUs left",
    BalanceClass.FREE_FEW_GPUS: "a job waits that needs more GPUs on one node, or more nodes at the same time",
    BalanceClass.FREE_OTHER_TYPE: "a job waits that would fit, but requests another type of GPU",
    BalanceClass.FREE_LIMIT: "a job waits that would fit, but for a limit of its QOS, association or partition",
    BalanceClass.FREE_PLANNED: "a larger job waits for more GPUs or nodes, and starts here next",
    BalanceClass.FREE_CYCLE: "the job that takes the GPU fits and starts within a minute",
    BalanceClass.FREE_UNKNOWN: "a job waits, and accounting does not show why it does not start here",
    BalanceClass.FREE: "no waiting job needs the GPU",
    BalanceClass.RESERVED: "the node is in a reservation, and no job of it holds the GPU",
    BalanceClass.MAINTENANCE: "the node is in a maintenance reservation",
    BalanceClass.DRAINED: "the node is drained, and no job holds the GPU any more",
    BalanceClass.DOWN: "the node is down",
    BalanceClass.NOT_KNOWN: "the state of the node is not known",
}
