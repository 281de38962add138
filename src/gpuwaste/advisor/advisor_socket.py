"""The advisor's socket: created again where a dead advisor left one, never taken from a running one."""

import contextlib
import os
import socket
import stat
from pathlib import Path
from typing import Final, Self

from gpuwaste.core.config import Config
from gpuwaste.core.errors import ConfigError
from gpuwaste.core.parts import Part, Parts
from gpuwaste.core.unix_socket import connect_unix, require_room
from gpuwaste.net.peers import peer_of

BACKLOG: Final = 1024
_TRY_S: Final = 1.0


class ListeningSocket(Part):
    """The advisor's listening socket."""

    def __init__(self, path: Path) -> None:
        """Raise ConfigError as `open_listener` does."""
        self.path = path
        self.socket = open_listener(path)

    @classmethod
    def part_of(cls, parts: Parts) -> Self:
        """Return the part of an advisor."""
        return cls(Path(parts.get(Config).advisor.socket))

    def close(self) -> None:
        """Remove it."""
        if self.socket.fileno() >= 0:
            remove_socket(self.path, self.socket)


def open_listener(path: Path) -> socket.socket:
    """Return the listening socket. Raises ConfigError where a living process listens there, or it cannot be made.

    It is made under another name and then renamed: a client finds the old one or the new one. Its mode is 0666, since
    slurmctld runs as a user whose group is unknown; only the peer's uid decides who may send requests.
    """
    refuse_living(path)
    fresh = path.with_name(f".{os.getpid()}")  # no longer than the name itself, which may have the maximum length
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.unlink(missing_ok=True)
        listener.bind(str(fresh))
        fresh.chmod(0o666)
        listener.listen(BACKLOG)
        fresh.replace(path)
    except (OSError, ValueError) as error:
        listener.close()
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
        words = getattr(error, "strerror", None) or error
        raise ConfigError(f"{path}: the socket cannot be created: {words}: see [advisor] socket") from error
    return listener


def remove_socket(path: Path, listener: socket.socket) -> None:
    """Remove the socket at the end, unless another advisor has put its own there."""
    with contextlib.suppress(OSError):
        with connect_unix(path, _TRY_S) as probe:
            pid = peer_of(probe)[0]
        if pid == os.getpid():
            path.unlink(missing_ok=True)
    listener.close()


def refuse_living(path: Path) -> None:
    """Raise ConfigError where something listens at `path`, or where it is not a socket."""
    require_room("[advisor] socket", path)
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}: see [advisor] socket") from error
    if not stat.S_ISSOCK(mode):
        raise ConfigError(f"{path}: exists but is not a socket: remove it, or set [advisor] socket")
    try:
        with connect_unix(path, _TRY_S) as probe:
            pid = peer_of(probe)[0]
    except (ConnectionRefusedError, FileNotFoundError):
        return
    except OSError as error:
        raise ConfigError(f"{path}: cannot connect: {error.strerror or error}") from error
    raise ConfigError(f"{path}: process {pid} already listens there: stop that advisor, or set [advisor] socket")
