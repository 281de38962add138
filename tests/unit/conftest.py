"""What keeps these tests pure: one that binds or connects a socket or starts a process fails, in any thread."""

import sys
from collections.abc import Iterator
from typing import Final

import pytest

_EVENTS: Final = frozenset(
    {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "socket.bind", "socket.connect", "subprocess.Popen"}
)


class _Watch:
    """An audit hook, which stays for the life of the process, with a switch."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _EVENTS and self.on:
            self.seen.append(f"{event} {str(arguments[1:2])[:200]}")


_WATCH: Final = _Watch()


@pytest.fixture(autouse=True)
def _pure() -> Iterator[None]:
    """Fail a test that used a server or another process: it belongs to tests/integration."""
    _WATCH.seen.clear()
    _WATCH.on = True
    yield
    _WATCH.on = False
    assert _WATCH.seen == [], "a test with a server or a process belongs to tests/integration"
