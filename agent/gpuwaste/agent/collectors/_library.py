"""A GPU vendor's C library through ctypes: found by name, with error handling per field, GPU and driver."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.ledger.gpu_sample import UnknownReason

MAX_DEVICES: Final = 256  # far more than a node has, including partitions
MAX_PID: Final = 2**22  # of Linux


class GpuLostError(Exception):
    """This GPU fell off the bus or waits for a reset; the others are not affected."""


class FieldError(Exception):
    """This field cannot be read; `reason` is not_supported, or driver for an error that may be temporary."""

    def __init__(self, reason: UnknownReason) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """The meaning of a library's return codes; 0 is success, and a code in no set may be temporary."""

    driver: frozenset[int]
    lost: frozenset[int]
    absent: frozenset[int]


def load(names: Sequence[str]) -> ctypes.CDLL | None:
    """Load the first of the names that can be loaded; None if none can."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


class Library:
    """Calls of one library, by name. Arguments are ctypes values."""

    def __init__(self, title: str, handle: ctypes.CDLL, codes: ErrorCodes) -> None:
        self.title = title
        self._handle = handle
        self._codes = codes

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function. Raises CollectorError where the driver is gone, else FieldError with its reason."""
        function = getattr(self._handle, name, None)
        if function is None:
            raise FieldError(UnknownReason.NOT_SUPPORTED)
        code = int(function(*arguments)) & 0xFFFFFFFF
        if code == 0:
            return
        if code in self._codes.driver:
            raise CollectorError(f"{self.title}: {name}: error {code:#x}: is the driver loaded?")
        if code in self._codes.lost:
            raise FieldError(UnknownReason.GPU_LOST)
        raise FieldError(UnknownReason.NOT_SUPPORTED if code in self._codes.absent else UnknownReason.DRIVER)

    def number(self, name: str, *arguments: Any, kind: Any = ctypes.c_uint64) -> int | None:
        """Return the number that a function writes to its last argument; None where it cannot be read."""
        value = kind()
        try:
            self.call(name, *arguments, ctypes.byref(value))
        except FieldError:
            return None
        return int(value.value)

    def fills(self, name: str, *arguments: Any) -> bool:
        """Call a function that fills a struct; False where it cannot be read."""
        try:
            self.call(name, *arguments)
        except FieldError:
            return False
        return True


def text(raw: bytes, limit: int = 96) -> str:
    """Return a library's bytes as text: printable, and no longer than `limit`."""
    found = raw.split(b"\0", 1)[0].decode("utf-8", "replace").strip()
    return "".join(character for character in found if character.isprintable())[:limit]


def address(domain: int, bus: int, device: int) -> str:
    """Return a PCI address without its function, in the form of sysfs."""
    return f"{domain:04x}:{bus:02x}:{device:02x}"


def device_count(count: int | None, title: str) -> int:
    """Return a count of devices. Raises CollectorError for None or an absurd one."""
    if count is None or count > MAX_DEVICES:
        raise CollectorError(f"{title}: cannot list GPUs ({'no answer' if count is None else f'{count} devices'})")
    return count
