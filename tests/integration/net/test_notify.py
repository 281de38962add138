"""What systemd is told: exact datagrams on a real socket, signs of life only when due, nothing without a socket."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.notify_socket import notify_socket, said

from gpuwaste.net.systemd_notifier import SILENT, SystemdNotifier

pytestmark = pytest.mark.sockets


class Now:
    """A steady clock that stands until it is set."""

    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    with notify_socket(tmp_path, 10) as sock:
        yield sock


def test_each_word_is_the_datagram_that_sd_notify_documents(listener: socket.socket) -> None:
    """READY, RELOADING with its time, STOPPING and a longer start; a status is one line, whatever is in it."""
    notifier = SystemdNotifier(listener.getsockname())
    notifier.starting("waiting\nREADY=1", 20)
    notifier.ready("all well")
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    notifier.reloading()
    notifier.stopping()
    waiting, ready, reloading, stopping = said(listener)
    assert waiting == "STATUS=waiting READY=1\nEXTEND_TIMEOUT_USEC=20000000"
    assert ready == "READY=1\nSTATUS=all well"
    assert reloading.startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert before <= int(reloading.rpartition("=")[2]) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    assert stopping == "STOPPING=1\nSTATUS=stopping"


def test_signs_of_life_come_four_times_an_interval_however_often_the_loop_turns(listener: socket.socket) -> None:
    """A loop of 1,000 turns a second in an interval of 4 s sends one a second, and none while it stands."""
    now = Now()
    notifier = SystemdNotifier(listener.getsockname(), 4_000_000, now)
    for _ in range(3000):
        notifier.alive()
        now.s += 0.001
    assert said(listener) == ["WATCHDOG=1"] * 3
    now.s += 3600
    assert said(listener) == []


def test_the_environment_says_where_and_is_not_handed_on(listener: socket.socket) -> None:
    """Socket and interval are taken out of the environment; an interval meant for another process is not ours."""
    path = listener.getsockname()
    environ = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid()), "PATH": "/bin"}
    SystemdNotifier.from_environment(environ).alive()
    assert said(listener) == ["WATCHDOG=1"]
    assert environ == {"PATH": "/bin"}
    other = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}
    notifier = SystemdNotifier.from_environment(other)
    notifier.alive()
    notifier.ready()
    assert said(listener) == ["READY=1\nSTATUS=serving"]


def test_an_abstract_name_works() -> None:
    """NOTIFY_SOCKET=@name is a socket without a file."""
    name = f"gpuwaste-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0{name}")
        SystemdNotifier(f"@{name}").ready()
        assert said(sock) == ["READY=1\nSTATUS=serving"]


def test_without_a_listener_nothing_is_raised_and_a_full_queue_holds_no_loop_up(listener: socket.socket) -> None:
    """No socket, a dead one and one whose queue is full are all the same to the caller; `alive` does not wait."""
    SILENT.ready()
    SILENT.alive()
    SystemdNotifier("/nowhere/at/all").ready()
    SystemdNotifier("neither a path nor a name").ready()
    now = Now()
    notifier = SystemdNotifier(listener.getsockname(), 4_000_000, now)

    def flood() -> None:
        for _ in range(5000):  # many times what a queue takes (net.unix.max_dgram_qlen)
            now.s += 2
            notifier.alive()

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert 0 < len(said(listener)) < 5000
