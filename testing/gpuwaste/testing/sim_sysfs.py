"""The part of sysfs by which a GPU's device files are found: /sys/bus/pci/devices of a simulated node."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpuwaste.testing.sim_gpus import FIRST_RENDER, SimGpu

_PCI_VENDOR: Final = {"nvidia": "0x10de", "amd": "0x1002", "intel": "0x8086"}


def make_pci_devices(directory: Path, gpus: Sequence[SimGpu]) -> None:
    """Add a directory for each GPU with its PCI vendor and, where it has one, its render node and card."""
    directory.mkdir(parents=True, exist_ok=True)
    for gpu in gpus:
        place = directory / gpu.pci_bus_id[4:].lower()
        place.mkdir(exist_ok=True)
        (place / "vendor").write_text(f"{_PCI_VENDOR[gpu.vendor]}\n")
        if gpu.render:
            (place / "drm" / f"renderD{gpu.render}").mkdir(parents=True, exist_ok=True)
            (place / "drm" / f"card{gpu.render - FIRST_RENDER}").mkdir(exist_ok=True)


def with_pci_devices(directory: Path) -> list[str]:
    """Return a command of root that runs a program for which `directory` is /sys/bus/pci/devices."""
    script = 'mount --bind "$0" /sys/bus/pci/devices && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(directory)]
