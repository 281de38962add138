"""The GPUs of a simulated node, and how they stand in its devices.conf and mig-minors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from uuid import uuid4

FIRST_RENDER = 128  # the kernel numbers render nodes from here
_FIRST_CAP_MINOR = 3  # the driver numbers the capability files of a GPU's instances from here


class Arch(IntEnum):
    """NVML_DEVICE_ARCH_*: what the features of a GPU depend on (MIG from Ampere, GPM from Hopper)."""

    PASCAL = 4
    VOLTA = 5
    TURING = 6
    AMPERE = 7
    ADA = 8
    HOPPER = 9


@dataclass(frozen=True, slots=True)
class MigInstance:
    """One MIG device: a compute instance in a GPU instance."""

    gi: int
    ci: int = 0
    profile: str = "1g.5gb"
    memory_mib: int = 4864
    sm_count: int = 14
    slices: int = 1
    uuid: str = field(default_factory=lambda: f"MIG-{uuid4()}")
    render: int = 0  # minor of /dev/dri/renderDN, of a partition of an AMD GPU


@dataclass(frozen=True, slots=True)
class SimGpu:
    """One GPU as the driver would describe it. The NVML index is its place in the order of PCI addresses."""

    uuid: str
    minor: int
    pci_bus_id: str
    name: str = "NVIDIA A100-SXM4-40GB"
    arch: Arch = Arch.AMPERE
    memory_mib: int = 40960
    reserved_mib: int = 600
    power_limit_w: int = 400
    idle_w: int = 50
    sm_count: int = 108
    mig_enabled: bool = False
    mig: tuple[MigInstance, ...] = ()
    vendor: str = "nvidia"
    render: int = 0  # minor of /dev/dri/renderDN; `minor` is then the simulation's own number alone
    unique_id: int = 0  # fused into an AMD GPU


def make_gpus(minors: Sequence[int], arch: Arch = Arch.AMPERE) -> list[SimGpu]:
    """Make one GPU for each minor number, with fresh UUIDs; the order given is the NVML (PCI) order."""
    hopper = arch >= Arch.HOPPER
    return [
        SimGpu(
            uuid=f"GPU-{uuid4()}",
            minor=minor,
            pci_bus_id=f"00000000:{index * 0x20 + 7:02X}:00.0",
            arch=arch,
            name="NVIDIA H100 80GB HBM3" if hopper else "NVIDIA A100-SXM4-40GB",
            memory_mib=81559 if hopper else 40960,
            power_limit_w=700 if hopper else 400,
            sm_count=132 if hopper else 108,
        )
        for index, minor in enumerate(minors)
    ]


def make_amd_gpus(slots: Sequence[int], *, partitions: int = 0) -> list[SimGpu]:
    """Make one MI300X for each slot, /dev/dri/renderD128 and on in the order given; `partitions` cuts each (CPX)."""
    return [_amd_gpu(slot, index, max(1, partitions), cut=partitions > 0) for index, slot in enumerate(slots)]


def _amd_gpu(slot: int, index: int, parts: int, *, cut: bool) -> SimGpu:
    unique_id = uuid4().int >> 64 | 1
    uuid, first = f"GPU-{unique_id:016x}", FIRST_RENDER + index * parts
    partitions = (
        MigInstance(gi=at, profile="CPX", memory_mib=196608 // parts, uuid=f"{uuid}-p{at}", render=first + at)
        for at in range(parts)
    )
    return SimGpu(
        uuid=uuid,
        minor=slot,
        pci_bus_id=f"00000000:{index * 0x10 + 5:02X}:00.0",
        name="AMD Instinct MI300X",
        memory_mib=196608,
        power_limit_w=750,
        idle_w=140,
        sm_count=304,
        mig_enabled=cut,
        mig=tuple(partitions) if cut else (),
        vendor="amd",
        render=first,
        unique_id=unique_id,
    )


def make_intel_gpus(slots: Sequence[int], *, tiles: int = 2, first_render: int = FIRST_RENDER) -> list[SimGpu]:
    """Make one Max 1550 for each slot, /dev/dri/renderD128 and on in the order given."""
    return [_intel_gpu(slot, index, tiles, first_render + index) for index, slot in enumerate(slots)]


def _intel_gpu(slot: int, index: int, tiles: int, render: int) -> SimGpu:
    """Its UUID is made of PCI ids and address, as Intel's drivers make it."""
    bus = index * 0x10 + 0x3A
    uuid = f"GPU-00000000-0000-{bus:04x}-0000-002f0bd58086"
    memory_mib = 131072
    return SimGpu(
        uuid=uuid,
        minor=slot,
        pci_bus_id=f"00000000:{bus:02X}:00.0",
        name="Intel(R) Data Center GPU Max 1550",
        memory_mib=memory_mib,
        power_limit_w=600,
        idle_w=120,
        sm_count=128,
        mig_enabled=tiles > 1,
        mig=tuple(
            MigInstance(gi=at, profile="tile", memory_mib=memory_mib // tiles, uuid=f"{uuid}-t{at}")
            for at in range(tiles if tiles > 1 else 0)
        ),
        vendor="intel",
        render=render,
    )


def _record(kind: str, values: dict[str, object]) -> str:
    return "\t".join([kind, *(f"{key}={value}" for key, value in values.items())])


def gpu_lines(gpu: SimGpu) -> list[str]:
    """Return the records of a GPU and its MIG devices in devices.conf."""
    head = _record(
        "gpu",
        {
            "uuid": gpu.uuid,
            "minor": gpu.minor,
            "pci": gpu.pci_bus_id,
            "name": gpu.name,
            "arch": int(gpu.arch),
            "memory_mib": gpu.memory_mib,
            "reserved_mib": gpu.reserved_mib,
            "power_limit_mw": gpu.power_limit_w * 1000,
            "idle_mw": gpu.idle_w * 1000,
            "sm": gpu.sm_count,
            "mig": int(gpu.mig_enabled),
            "vendor": gpu.vendor,
            "render": gpu.render,
            "unique": f"{gpu.unique_id:x}",
        },
    )
    return [head, *(_mig_line(gpu, mig) for mig in gpu.mig)]


def _mig_line(gpu: SimGpu, mig: MigInstance) -> str:
    return _record(
        "mig",
        {
            "uuid": mig.uuid,
            "parent": gpu.uuid,
            "gi": mig.gi,
            "ci": mig.ci,
            "profile": mig.profile,
            "memory_mib": mig.memory_mib,
            "sm": mig.sm_count,
            "slices": mig.slices,
            "render": mig.render,
        },
    )


def mig_minors_lines(gpus: Sequence[SimGpu]) -> list[str]:
    """Return the text of mig-minors: the capability files' minors of every instance, as the driver numbers them."""
    lines = ["config 1", "monitor 2"]
    for gpu in gpus:
        if gpu.vendor != "nvidia":
            continue
        minor = _FIRST_CAP_MINOR + gpu.minor * 135
        for gi in sorted({mig.gi for mig in gpu.mig}):
            lines.append(f"gpu{gpu.minor}/gi{gi}/access {minor + gi * 9}")
            lines += [
                f"gpu{gpu.minor}/gi{gi}/ci{mig.ci}/access {minor + gi * 9 + 1 + mig.ci}"
                for mig in gpu.mig
                if mig.gi == gi
            ]
    return lines
