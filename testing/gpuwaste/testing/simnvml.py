"""Simulated nodes for the simulated NVML: their GPUs, faults on demand, and who has NVML open.

A node is a directory: devices.conf (what GPUs it has), faults.conf, mig-minors, activity.bin (who uses which GPU,
written by load programs) and clients/ (who has NVML open). Programs find it through GPUWASTE_SIM_DIR.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuwaste.testing.sim_build import build_native, library_env, preload
from gpuwaste.testing.sim_gpus import (
    Arch,
    MigInstance,
    SimGpu,
    gpu_lines,
    make_amd_gpus,
    make_gpus,
    make_intel_gpus,
    mig_minors_lines,
)
from gpuwaste.testing.sim_oracle import OracleEvent, OracleSpan, oracle_seconds, oracle_spans, read_oracle
from gpuwaste.testing.sim_sysfs import make_pci_devices

__all__ = [
    "Arch",
    "MigInstance",
    "NvmlFault",
    "OracleEvent",
    "OracleSpan",
    "SimGpu",
    "SimNode",
    "build_native",
    "library_env",
    "make_amd_gpus",
    "make_gpus",
    "make_intel_gpus",
    "oracle_seconds",
    "oracle_spans",
    "preload",
    "read_oracle",
]

_HANG_MS = 600_000
_NOT_SUPPORTED = 3  # NVML_ERROR_NOT_SUPPORTED


@dataclass(frozen=True, slots=True)
class NvmlFault:
    """What goes wrong on a GPU, or on all of them; a function's name may omit its version suffix, "*" is every one."""

    kind: str
    function: str = "-"
    value: int = 0

    @classmethod
    def lost(cls) -> "NvmlFault":
        """Answer GPU_IS_LOST to every call on the GPU."""
        return cls("lost")

    @classmethod
    def gone(cls) -> "NvmlFault":
        """Leave the GPU out of the count; its old handles answer GPU_IS_LOST."""
        return cls("gone")

    @classmethod
    def error(cls, function: str, code: int) -> "NvmlFault":
        """Let the function answer this NVML error code."""
        return cls("error", function, code)

    @classmethod
    def not_supported(cls, function: str) -> "NvmlFault":
        """Let the function answer NOT_SUPPORTED."""
        return cls.error(function, _NOT_SUPPORTED)

    @classmethod
    def slow(cls, function: str, ms: int) -> "NvmlFault":
        """Let the function take this long, asleep."""
        return cls("delay", function, ms)

    @classmethod
    def hang(cls, function: str) -> "NvmlFault":
        """Let the function hang until the fault is cleared (or ten minutes have passed)."""
        return cls.slow(function, _HANG_MS)


def _replace(path: Path, lines: Iterable[str]) -> None:
    """Write a file whole, by rename: readers see the old text or the new."""
    new = path.with_name(path.name + ".new")
    new.write_text("".join(f"{line}\n" for line in lines))
    new.rename(path)


class SimNode:
    """One simulated node, by its state directory; several objects and processes may work on the same one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def create(
        cls, directory: Path, gpus: Sequence[SimGpu], *, driver: str = "550.54.15", latency_us: int = 0
    ) -> "SimNode":
        """Make the node's directory, open to the jobs of every user; latency_us is slept in each NVML call."""
        directory.mkdir(parents=True, exist_ok=True)
        clients = directory / "clients"
        clients.mkdir(exist_ok=True)
        for path in (directory, clients):
            path.chmod(0o1777)
        activity = directory / "activity.bin"
        activity.touch()  # the first program that opens it fills it
        activity.chmod(0o666)
        node = cls(directory)
        node.set_gpus(gpus, driver=driver, latency_us=latency_us)
        return node

    def set_gpus(
        self,
        gpus: Sequence[SimGpu],
        *,
        driver: str = "550.54.15",
        latency_us: int = 0,
        amdsmi: int = 0,
        amdsmi_major: int = 7,
        ze_groups: int = 0,
    ) -> None:
        """Describe the node's GPUs anew, also while NVML is open.

        `amdsmi` is libamd_smi's generation, 0 the newest; `ze_groups` is what engine groups Level Zero has
        (native/simze/sensors.c).
        """
        lines = [f"driver\t{driver}", f"nvml\t12.{driver}", f"latency_us\t{latency_us}"]
        if amdsmi:
            lines += [f"amdsmi\t{amdsmi}", f"amdsmi_major\t{amdsmi_major}"]
        if ze_groups:
            lines.append(f"ze_groups\t{ze_groups}")
        lines += [line for gpu in gpus for line in gpu_lines(gpu)]
        make_pci_devices(self.pci_devices, gpus)
        _replace(self.directory / "devices.conf", lines)
        _replace(self.mig_minors, mig_minors_lines(gpus))

    def uuids(self) -> dict[int, str]:
        """Return the UUID of each GPU by its minor number."""
        lines = (self.directory / "devices.conf").read_text().splitlines()
        gpus = [dict(word.split("=", 1) for word in line.split("\t")[1:]) for line in lines if line.startswith("gpu\t")]
        return {int(gpu["minor"]): gpu["uuid"] for gpu in gpus}

    @property
    def sys_root(self) -> Path:
        """The node's own /sys, with the PCI addresses of its GPUs alone."""
        return self.directory / "sys"

    @property
    def pci_devices(self) -> Path:
        """The node's own /sys/bus/pci/devices."""
        return self.sys_root / "bus" / "pci" / "devices"

    @property
    def mig_minors(self) -> Path:
        """The node's own /proc/driver/nvidia-caps/mig-minors."""
        return self.directory / "mig-minors"

    @property
    def env(self) -> dict[str, str]:
        """The variable by which programs find this node."""
        return {"GPUWASTE_SIM_DIR": str(self.directory)}

    def _faults(self) -> list[str]:
        path = self.directory / "faults.conf"
        return path.read_text().splitlines() if path.exists() else []

    def _set_faults(self, lines: Iterable[str]) -> None:
        _replace(self.directory / "faults.conf", lines)

    def inject(self, gpu: SimGpu | str | None, fault: NvmlFault) -> None:
        """Let something go wrong on a GPU (or on the MIG device of this UUID); None is everywhere."""
        subject = gpu.uuid if isinstance(gpu, SimGpu) else gpu or "*"
        self._set_faults([*self._faults(), f"{subject}\t{fault.kind}\t{fault.function}\t{fault.value}"])

    def clear(self, gpu: SimGpu | str | None = None) -> None:
        """Take back the faults of one GPU, or all; a driver that was reset stays reset, Xids stay delivered."""
        subject = gpu.uuid if isinstance(gpu, SimGpu) else gpu

        def stays(line: str) -> bool:
            words = line.split("\t")
            return words[0] == "epoch" or words[1] == "xid" or (subject is not None and words[0] != subject)

        self._set_faults(line for line in self._faults() if stays(line))

    def xid(self, gpu: SimGpu | str, code: int) -> None:
        """Report a critical Xid error of the GPU (or of the one of this UUID) to the event sets registered for it."""
        faults = self._faults()
        sequence = 1 + sum(line.split("\t")[1] == "xid" for line in faults)
        self._set_faults([*faults, f"{gpu.uuid if isinstance(gpu, SimGpu) else gpu}\txid\t{sequence}\t{code}"])

    def unload_driver(self) -> None:
        """Let nvmlInit answer DRIVER_NOT_LOADED, and every call of those who have NVML open UNKNOWN; see clear."""
        self._set_faults([*self._faults(), "driver\tnot_loaded"])

    def reset_driver(self) -> None:
        """Make everyone who has NVML open get UNINITIALIZED until he shuts it down and initialises it again."""
        faults = self._faults()
        epoch = max((int(line.split("\t")[1]) for line in faults if line.startswith("epoch\t")), default=0)
        self._set_faults([*(line for line in faults if not line.startswith("epoch\t")), f"epoch\t{epoch + 1}"])

    def clients(self) -> list[int]:
        """Return the pids of the live processes that have NVML open: while there is one, no GPU can be reset."""
        found = []
        for path in (self.directory / "clients").iterdir():
            pid, start_ticks = path.name.split(".")
            if _start_ticks(int(pid)) == int(start_ticks):
                found.append(int(pid))
        return sorted(found)


def _start_ticks(pid: int) -> int | None:
    """Field 22 of /proc/PID/stat: with the pid it names a process for good; None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *rest = text.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else int(rest[18])
