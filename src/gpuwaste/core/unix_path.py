"""The room that the kernel has for the path of a Unix socket."""

import os
from pathlib import Path
from typing import Final

from gpuwaste.core.errors import ConfigError

MAX_BYTES: Final = 107


def require_room(key: str, path: str | Path) -> None:
    """Raise ConfigError where a path is too long for a Unix socket; `key` is the setting that it follows from."""
    if (size := len(os.fsencode(path))) > MAX_BYTES:
        raise ConfigError(
            f"{key} {path}: {size} bytes, but the path of a Unix socket has at most {MAX_BYTES}: set a shorter one"
        )
