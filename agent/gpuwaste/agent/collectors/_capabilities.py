"""Which Linux capabilities a process has: values that the kernel hides without them are absent, not 0."""

from pathlib import Path
from typing import Final

DAC_OVERRIDE: Final = 1
DAC_READ_SEARCH: Final = 2
PERFMON: Final = 38
SYS_PTRACE: Final = 19
_SYS_ADMIN: Final = 21  # includes CAP_PERFMON, for the kernel


def holds(status: Path, bit: int) -> bool:
    """Return whether the process of /proc/PID/status has a capability in effect; False where that cannot be read."""
    try:
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
        mask = next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return False
    return bool(mask >> bit & 1) or (bit == PERFMON and bool(mask >> _SYS_ADMIN & 1))
