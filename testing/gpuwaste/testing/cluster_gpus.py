"""The simulated GPUs of a loopback cluster's nodes, of all vendors."""

from collections.abc import Sequence

from gpuwaste.testing.cluster_options import Node
from gpuwaste.testing.sim_build import build_level_zero
from gpuwaste.testing.sim_gpus import FIRST_RENDER, SimGpu, make_amd_gpus, make_intel_gpus
from gpuwaste.testing.sim_sysfs import with_pci_devices
from gpuwaste.testing.simnvml import SimNode


def node_gpus(nvidia: Sequence[SimGpu], node: Node) -> list[SimGpu]:
    """Return a node's NVIDIA GPUs with those of other vendors; render nodes are AMD's, then Intel's."""
    if node.intel:
        build_level_zero()
    intel = make_intel_gpus(node.intel, first_render=FIRST_RENDER + len(node.amd))
    return [*nvidia, *make_amd_gpus(node.amd), *intel]


def pci_devices_of(node: Node, sim: SimNode | None) -> list[str]:
    """Return the command with which root starts a program that looks for Intel GPUs in sysfs; none without any."""
    return with_pci_devices(sim.pci_devices) if node.intel and sim is not None else []
