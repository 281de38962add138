"""A daemon's notifications to systemd over `NOTIFY_SOCKET` (sd_notify(3)): ready, watchdog, reloading, stopping.

Without that socket, which only systemd provides, nothing is sent.
"""

import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, MutableMapping
from typing import Final, Self

from gpuwaste.core.text import words_of

_SHARES: Final = 4  # this many keep-alives in each watchdog interval: one may be late
_SEND_LIMIT: Final = struct.pack("ll", 1, 0)  # one second; a timeout set in Python would make MSG_DONTWAIT wait too
_LONGEST: Final = 512


class SystemdNotifier:
    """Sends datagrams; never raises, and `alive` never waits. Threads may share one object."""

    def __init__(self, address: str = "", watchdog_us: int = 0, mono_s: Callable[[], float] = time.monotonic) -> None:
        """`address` is a path or, with a leading @, a name in the abstract namespace; 0: no watchdog."""
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._every_s = watchdog_us / _SHARES / 1e6
        self._mono_s = mono_s
        self._next_s = 0.0
        self._socket: socket.socket | None = None
        if address[:1] in {"/", "@"}:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _SEND_LIMIT)

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str] = os.environ) -> Self:
        """Return the notifier that systemd requested, and remove its variables for child processes."""
        address = environ.pop("NOTIFY_SOCKET", "")
        watchdog, pid = environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", "")
        ours = pid in {"", str(os.getpid())}
        return cls(address, int(watchdog) if ours and watchdog.isascii() and watchdog.isdigit() else 0)

    def ready(self, status: str = "serving") -> None:
        """Report that the daemon is serving, for the first time or after `reloading`."""
        self._send(f"READY=1\nSTATUS={_words(status)}")

    def starting(self, status: str, more_s: float) -> None:
        """Report what the start waits for, and that the next message may take up to `more_s` seconds more."""
        self._send(f"STATUS={_words(status)}\nEXTEND_TIMEOUT_USEC={int(more_s * 1e6)}")

    def reloading(self) -> None:
        """Report that the configuration is being reloaded; `ready` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """Report that the daemon is stopping."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def alive(self) -> None:
        """Send a keep-alive, where one is due: called by the loop whose hang must be noticed."""
        if not self._every_s or (now := self._mono_s()) < self._next_s:
            return
        self._next_s = now + self._every_s
        self._send("WATCHDOG=1", socket.MSG_DONTWAIT)

    def _send(self, text: str, flags: int = 0) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.sendto(text.encode("utf-8", "replace"), flags, self._address)


def _words(text: str) -> str:
    """Return the text as one line: a line break would begin another assignment."""
    return words_of(text, _LONGEST)


SILENT: Final = SystemdNotifier()
