"""The memory of a process, from /proc/PID/status (proc(5))."""

from pathlib import Path


def rss_b(pid: int) -> int:
    """Return what is resident, bytes. Raises OSError where the process is gone."""
    return _status(pid, "VmRSS")


def peak_rss_b(pid: int) -> int:
    """Return the most that was resident, bytes; getrusage would tell a parent's. Raises OSError."""
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> int:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    return int(text.partition(f"{name}:")[2].split()[0]) * 1024
