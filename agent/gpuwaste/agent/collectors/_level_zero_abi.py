"""The structs of zes_api.h (Level Zero, Sysman) that the Intel collector reads; the same from loader 1.8 to 1.32.

tests/contract/test_intel_contract.py compares sizes and offsets with the vendor's header.
"""

import ctypes
from collections.abc import Sequence
from typing import Any, ClassVar, Final

_TEXT: Final = 64
_NAME: Final = 256
_UUID: Final = 16


class Struct(ctypes.Structure):
    """A struct that begins with its type number, which a driver may check, and a pointer to extensions."""

    STYPE: ClassVar[int]
    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (("stype", ctypes.c_uint32), ("next", ctypes.c_void_p))

    @classmethod
    def new(cls) -> Any:
        """Return an empty struct with its type set."""
        return cls(cls.STYPE)


class _Core(Struct):
    """ze_device_properties_t."""

    STYPE = 0x3
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("vendor_id", ctypes.c_uint32),
        ("device_id", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("subdevice_id", ctypes.c_uint32),
        ("core_clock_rate", ctypes.c_uint32),
        ("max_mem_alloc_size", ctypes.c_uint64),
        ("counts", ctypes.c_uint32 * 7),  # hardware contexts, priorities, threads, SIMD width, EUs, subslices, slices
        ("timer_resolution", ctypes.c_uint64),
        ("timestamp_bits", ctypes.c_uint32 * 2),
        ("uuid", ctypes.c_uint8 * _UUID),
        ("name", ctypes.c_char * _NAME),
    )


class DeviceProperties(Struct):
    """zes_device_properties_t."""

    STYPE = 0x1
    _fields_ = (
        ("core", _Core),
        ("tiles", ctypes.c_uint32),
        ("serial_number", ctypes.c_char * _TEXT),
        ("board_number", ctypes.c_char * _TEXT),
        ("brand_name", ctypes.c_char * _TEXT),
        ("model_name", ctypes.c_char * _TEXT),
        ("vendor_name", ctypes.c_char * _TEXT),
        ("driver_version", ctypes.c_char * _TEXT),
    )

    @classmethod
    def new(cls) -> Any:
        """Return an empty struct; the struct inside has a separate type."""
        made = super().new()
        made.core.stype = _Core.STYPE
        return made


class PciProperties(Struct):
    """zes_pci_properties_t."""

    STYPE = 0x2
    _fields_ = (
        ("address", ctypes.c_uint32 * 4),  # domain, bus, device, function
        ("speed", ctypes.c_int64 * 2),
        ("flags", ctypes.c_uint8 * 3),
    )


class EngineProperties(Struct):
    """zes_engine_properties_t."""

    STYPE = 0x5
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("on_tile", ctypes.c_uint8),
        ("tile", ctypes.c_uint32),
    )


class MemProperties(Struct):
    """zes_mem_properties_t."""

    STYPE = 0xB
    _fields_ = (
        ("type", ctypes.c_uint32),
        ("on_tile", ctypes.c_uint8),
        ("tile", ctypes.c_uint32),
        ("location", ctypes.c_uint32),
        ("physical_size", ctypes.c_uint64),
        ("bus_width", ctypes.c_int32),
        ("channels", ctypes.c_int32),
    )


class MemState(Struct):
    """zes_mem_state_t."""

    STYPE = 0x1E
    _fields_ = (
        ("health", ctypes.c_uint32),
        ("free", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
    )


class PowerProperties(Struct):
    """zes_power_properties_t."""

    STYPE = 0xD
    _fields_ = (
        ("on_tile", ctypes.c_uint8),
        ("tile", ctypes.c_uint32),
        ("can_control", ctypes.c_uint8),
        ("has_threshold", ctypes.c_uint8),
        ("default_limit_mw", ctypes.c_int32),
        ("min_limit_mw", ctypes.c_int32),
        ("max_limit_mw", ctypes.c_int32),
    )


class ProcessState(Struct):
    """zes_process_state_t."""

    STYPE = 0x16
    _fields_ = (
        ("pid", ctypes.c_uint32),
        ("mem_b", ctypes.c_uint64),
        ("shared_b", ctypes.c_uint64),
        ("engines", ctypes.c_uint32),
    )


class Count(ctypes.Structure):
    """zes_engine_stats_t and zes_power_energy_counter_t: a counter (microseconds, microjoules) and its clock."""

    _fields_ = (("value", ctypes.c_uint64), ("stamp_us", ctypes.c_uint64))
