"""One agent per state directory: a locked file that names the process which holds it."""

import fcntl
import os
from pathlib import Path

from gpuwaste.core.errors import StoreError


class StateLock:
    """Holds `state_dir`/agent.pid locked from construction to close(); the kernel lets go of it when we die.

    Raises StoreError naming the process that holds it, or why the directory cannot be used.
    """

    def __init__(self, state_dir: Path) -> None:
        path = state_dir / "agent.pid"
        try:
            state_dir.mkdir(parents=True, exist_ok=True, mode=0o750)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened: {error.strerror}: set [agent] state_dir") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._fd, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise StoreError(
                f"{state_dir}: used by another process, pid {holder}: each agent needs its own state_dir"
            ) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        """Let go; the file stays, empty."""
        os.ftruncate(self._fd, 0)
        os.close(self._fd)
