"""Device files of GPUs by PCI address, from sysfs, for vendors whose library does not return them."""

from pathlib import Path
from typing import Final

from gpuwaste.slurm.formats.gpu_positions import DRM_MAJOR, DeviceNode

_FIRST_RENDER: Final = 128


def nodes_of(render: int | None, card: int | None) -> tuple[DeviceNode, ...]:
    """Return the device numbers of a render node and a card."""
    return tuple(DeviceNode(DRM_MAJOR, minor) for minor in (render, card) if minor is not None)


def minors_at(sys_root: Path, pci: str) -> tuple[int | None, int | None]:
    """Return the minors of the render node and the card at a PCI address with its function; None where it has none."""
    render, card = None, None
    try:
        names = [path.name for path in (sys_root / "bus" / "pci" / "devices" / pci / "drm").iterdir()]
    except OSError:
        return None, None
    for name in names:
        if name.startswith("renderD") and name[7:].isdigit():
            render = int(name[7:])
        elif name.startswith("card") and name[4:].isdigit():
            card = int(name[4:])
    return (render if render is None or render >= _FIRST_RENDER else None), card


def has_render_node(sys_root: Path, pci_vendor: str) -> bool:
    """Return whether a kernel driver has made a render node for a PCI device of this vendor ("0x8086")."""
    for path in (sys_root / "bus" / "pci" / "devices").glob("*/drm/renderD*"):
        try:
            if (path.parent.parent / "vendor").read_text(encoding="ascii", errors="replace").strip() == pci_vendor:
                return True
        except OSError:
            continue
    return False
