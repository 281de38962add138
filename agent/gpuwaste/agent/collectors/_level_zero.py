"""libze_loader: the Sysman part of Level Zero, which zesInit (specification 1.5) opens.

The loader searches for drivers once per process and remembers the result, and no call closes it: so it is opened when
sysfs shows a GPU, and handles stay valid for the life of the agent.
"""

import ctypes
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors import _level_zero_abi as abi
from gpuwaste.agent.collectors._library import (
    MAX_PID,
    ErrorCodes,
    FieldError,
    Library,
    address,
    device_count,
    load,
    text,
)
from gpuwaste.agent.valid_ranges import POWER

NAMES: Final = ("libze_loader.so.1", "/usr/local/lib/libze_loader.so.1", "libze_loader.so")
TITLE: Final = "Level Zero"
OPENER: Final = "zesInit"
_CODES: Final = ErrorCodes(
    driver=frozenset({0x78000001}),  # uninitialized
    lost=frozenset({0x70000001, 0x70000006}),  # device lost, requires reset
    # low power, no permission, in use, dependency, and the unsupported
    absent=frozenset({0x70000007, 0x70010000, 0x70010001, 0x70020000, 0x78000002, 0x78000003}),
)
_GPU: Final = 1  # ZE_DEVICE_TYPE_GPU
_ON_DEVICE: Final = 1  # ZES_MEM_LOC_DEVICE
_OTHER_ENGINE: Final = 1  # ZES_ENGINE_TYPE_FLAG_OTHER: unknown engine
_MAX_HANDLES: Final = 256  # engine groups, memory modules or power domains of one GPU
_MAX_TILES: Final = 16
_MAX_PROCESSES: Final = 1024


@dataclass(frozen=True, slots=True)
class EngineGroup:
    """Engines whose time is counted together; `tile` is None for those of the full GPU."""

    handle: ctypes.c_void_p
    kind: int  # zes_engine_group_t
    tile: int | None


@dataclass(frozen=True, slots=True)
class ZeDevice:
    """One GPU with its tiles."""

    handle: ctypes.c_void_p
    index: int
    pci: str  # domain:bus:device.function, hexadecimal
    uuid: str  # as in Intel's programs; "" for none
    name: str
    tiles: int  # 1 for a GPU without tiles
    engines: tuple[EngineGroup, ...]
    memories: tuple[ctypes.c_void_p, ...]  # in the GPU, not in the host
    power: ctypes.c_void_p | None
    power_limit_mw: int | None


@dataclass(frozen=True, slots=True)
class Process:
    """A process that has the GPU open; `used` is None where its used engines are unknown."""

    pid: int
    used: bool | None


class LevelZero:
    """Reads GPUs through libze_loader. Calls raise CollectorError where it is not initialised."""

    def __init__(self, handle: ctypes.CDLL) -> None:
        self._handle = handle
        self._library = Library(TITLE, handle, _CODES)
        self._processes = (abi.ProcessState * _MAX_PROCESSES)()
        for state in self._processes:
            state.stype = abi.ProcessState.STYPE

    def open(self) -> None:
        """Initialise the library. Raises CollectorError where it is too old or has no driver."""
        if not hasattr(self._handle, OPENER):
            raise CollectorError("Level Zero: libze_loader has no zesInit: install a release that has it (level-zero)")
        try:
            self._library.call(OPENER, ctypes.c_uint32(0))
        except (CollectorError, FieldError) as error:
            raise CollectorError(
                "Level Zero: zesInit failed: install Intel's GPU driver for it (libze_intel_gpu), let the agent open"
                " /dev/dri, then restart the agent"
            ) from error

    def devices(self) -> list[ZeDevice]:
        """Return the GPUs of every driver. Raises CollectorError where they cannot be listed."""
        handles = [gpu for driver in self._listed("zesDriverGet") for gpu in self._listed("zesDeviceGet", driver)]
        device_count(len(handles), TITLE)
        found = (self._device(index, handle) for index, handle in enumerate(handles))
        return [device for device in found if device is not None]

    def check(self, device: ZeDevice) -> None:
        """Read a property that every GPU has. Raises FieldError, also for a lost GPU."""
        self._library.call("zesDeviceGetProperties", device.handle, ctypes.byref(abi.DeviceProperties.new()))

    def active(self, group: EngineGroup) -> tuple[int, int]:
        """Return microseconds of work and the counter's clock. Raises FieldError where they cannot be read."""
        found = abi.Count()
        self._library.call("zesEngineGetActivity", group.handle, ctypes.byref(found))
        return found.value, found.stamp_us

    def memory_b(self, module: ctypes.c_void_p) -> tuple[int, int] | None:
        """Return used and total bytes of a memory module."""
        state = self._filled(abi.MemState, "zesMemoryGetState", module)
        if state is None or state.free > state.size:
            return None
        return state.size - state.free, state.size

    def energy_uj(self, domain: ctypes.c_void_p) -> tuple[int, int] | None:
        """Return a counter of microjoules and its clock in microseconds."""
        found = abi.Count()
        if not self._library.fills("zesPowerGetEnergyCounter", domain, ctypes.byref(found)):
            return None
        return found.value, found.stamp_us

    def processes(self, device: ZeDevice) -> list[Process] | None:
        """Return the processes that have the GPU open and are visible to the agent."""
        count = ctypes.c_uint32(_MAX_PROCESSES)
        name = "zesDeviceProcessesGetState"
        if not self._library.fills(name, device.handle, ctypes.byref(count), self._processes):
            return None
        known = (state for state in self._processes[: min(count.value, _MAX_PROCESSES)] if 0 < state.pid <= MAX_PID)
        return [Process(state.pid, _used(state.engines)) for state in known]

    def _device(self, index: int, handle: ctypes.c_void_p) -> ZeDevice | None:
        """Return a GPU; None for a device of another kind (NPU, FPGA), and for one without an address."""
        properties = self._filled(abi.DeviceProperties, "zesDeviceGetProperties", handle)
        pci = self._filled(abi.PciProperties, "zesDevicePciGetProperties", handle)
        if properties is None or pci is None or properties.core.type != _GPU:
            return None
        domain, bus, slot, function = pci.address
        power = self._power_domain(handle)
        return ZeDevice(
            handle=handle,
            index=index,
            pci=f"{address(domain, bus, slot)}.{function:x}",
            uuid=_uuid_text(bytes(properties.core.uuid)),
            name=text(properties.model_name) or text(properties.core.name),
            tiles=min(max(1, properties.tiles), _MAX_TILES),
            engines=self._engines(handle),
            memories=self._memories(handle),
            power=power,
            power_limit_mw=None if power is None else self._power_limit_mw(power),
        )

    def _engines(self, device: ctypes.c_void_p) -> tuple[EngineGroup, ...]:
        found = []
        for handle in self._optional("zesDeviceEnumEngineGroups", device):
            properties = self._filled(abi.EngineProperties, "zesEngineGetProperties", handle)
            if properties is not None:
                found.append(EngineGroup(handle, properties.type, properties.tile if properties.on_tile else None))
        return tuple(found)

    def _memories(self, device: ctypes.c_void_p) -> tuple[ctypes.c_void_p, ...]:
        found = []
        for handle in self._optional("zesDeviceEnumMemoryModules", device):
            properties = self._filled(abi.MemProperties, "zesMemoryGetProperties", handle)
            if properties is None or properties.location == _ON_DEVICE:
                found.append(handle)
        return tuple(found)

    def _power_domain(self, device: ctypes.c_void_p) -> ctypes.c_void_p | None:
        """Return the domain of the card, else the first that is not of a tile."""
        card = ctypes.c_void_p()
        if self._library.fills("zesDeviceGetCardPowerDomain", device, ctypes.byref(card)) and card.value:
            return card
        for handle in self._optional("zesDeviceEnumPowerDomains", device):
            properties = self._filled(abi.PowerProperties, "zesPowerGetProperties", handle)
            if properties is not None and not properties.on_tile:
                return handle
        return None

    def _power_limit_mw(self, domain: ctypes.c_void_p) -> int | None:
        found = self._filled(abi.PowerProperties, "zesPowerGetProperties", domain)
        limits = () if found is None else (found.default_limit_mw, found.max_limit_mw)
        return next((int(limit) for limit in limits if limit > 0 and not POWER.fault(limit)), None)

    def _filled(self, kind: type[abi.Struct], name: str, handle: ctypes.c_void_p) -> Any:
        """Return a struct that a function filled in, None where it cannot be read."""
        found = kind.new()
        return found if self._library.fills(name, handle, ctypes.byref(found)) else None

    def _optional(self, name: str, device: ctypes.c_void_p) -> list[ctypes.c_void_p]:
        """Return the handles that a function lists for a device; empty where it fails."""
        try:
            return self._listed(name, device)
        except CollectorError:
            return []

    def _listed(self, name: str, *arguments: ctypes.c_void_p) -> list[ctypes.c_void_p]:
        """Return the handles that a function lists. Raises CollectorError where it fails."""
        count, handles = ctypes.c_uint32(_MAX_HANDLES), (ctypes.c_void_p * _MAX_HANDLES)()
        if not self._library.fills(name, *arguments, ctypes.byref(count), handles):
            raise CollectorError(f"Level Zero: cannot list GPUs: {name} failed")
        return [ctypes.c_void_p(handle) for handle in handles[: min(count.value, _MAX_HANDLES)] if handle]


def _used(engines: int) -> bool | None:
    """Return whether a process used an engine; one that only opened the GPU did not."""
    if engines & ~_OTHER_ENGINE:
        return True
    return None if engines else False


def _uuid_text(raw: bytes) -> str:
    """Return a UUID as xpu-smi writes it, last byte first; "" where it is empty."""
    digits = raw[::-1].hex()
    if not any(raw):
        return ""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def find() -> LevelZero | None:
    """Load the library; None where it is not installed."""
    handle = load(NAMES)
    return None if handle is None else LevelZero(handle)
