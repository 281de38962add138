"""The command line of qemu for a machine of the field, without KVM: it runs on any host, and slowly."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

CPUS: Final = 2
MEMORY_MB: Final = 4096
DEVICE: Final = "field"
"""The name of the port in the machine: /dev/virtio-ports/field."""
PORT: Final = "port"
"""The socket of the port, in the machine's folder."""
PACKETS: Final = "packets"
"""What left or reached the machine by its network card, in the format of pcap."""
DISK: Final = "disk.qcow2"
PARCEL: Final = "parcel"
NETWORK: Final = "10.99.0.0/24"
_ROUTER: Final = "10.99.0.254"
_KERNEL: Final = "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet mitigations=off"
"""The machine runs nothing that is not ours; every second of it counts."""


def command(folder: Path, image: Path) -> list[str]:
    """Return the command, for a folder with DISK and PARCEL, and the kernel beside the image."""
    found = ["qemu-system-x86_64"]
    for name, value in _options(folder, image):
        found += [f"-{name}", value] if value else [f"-{name}"]
    return found


def _options(folder: Path, image: Path) -> list[tuple[str, str]]:
    return [
        ("nodefaults", ""),
        ("no-user-config", ""),
        ("no-reboot", ""),
        ("display", "none"),
        ("machine", "q35"),
        ("accel", "tcg,thread=multi,tb-size=512"),
        ("cpu", "max"),
        ("smp", str(CPUS)),
        ("m", str(MEMORY_MB)),
        ("kernel", str(image / "vmlinuz")),
        ("initrd", str(image / "initrd")),
        ("append", _KERNEL),
        *_drive("system", folder / DISK, "qcow2"),
        *_drive("parcel", folder / PARCEL, "raw"),
        ("netdev", _words("user", id="net", restrict="on", net=NETWORK, host=_ROUTER)),
        ("device", _words("virtio-net-pci", netdev="net", romfile="")),
        ("object", _words("filter-dump", id="dump", netdev="net", file=folder / PACKETS)),
        ("device", "virtio-rng-pci"),
        ("serial", f"file:{folder / 'console.log'}"),
        ("device", "virtio-serial-pci"),
        ("chardev", _words("socket", id="port", path=folder / PORT, server="on", wait="off")),
        ("device", _words("virtserialport", chardev="port", name=DEVICE)),
    ]


def _drive(name: str, file: Path, form: str) -> list[tuple[str, str]]:
    # Unsafe: a disk that a crash of this host harms is thrown away.
    drive = {"if": "none", "id": name, "file": str(file), "format": form, "cache": "unsafe"}
    return [("drive", _joined(drive)), ("device", _words("virtio-blk-pci", drive=name))]


def _words(kind: str, **values: object) -> str:
    return f"{kind},{_joined({name: str(value) for name, value in values.items()})}"


def _joined(values: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value.replace(',', ',,')}" for name, value in values.items())
