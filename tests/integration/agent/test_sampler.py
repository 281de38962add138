"""The sampler and systemd's watchdog, over a real socket."""

import socket
import threading
from pathlib import Path

import pytest
from tests.unit.agent.fakes import START_US, a_scan
from tests.unit.agent.test_sampler import BUSY, Rig

from gpuwaste.agent.readings import GpuScan
from gpuwaste.net.systemd_notifier import SystemdNotifier
from gpuwaste.testing.clocks import FakeClock

pytestmark = pytest.mark.sockets


def test_a_collector_that_hangs_gives_no_sign_of_life(tmp_path: Path) -> None:
    """While the driver does not answer no WATCHDOG=1 reaches a real socket; as soon as it answers there is one."""
    rig = Rig(FakeClock(START_US // 1_000_000))
    hang, hanging = threading.Event(), threading.Event()

    def scan() -> GpuScan:
        hanging.set()
        assert hang.wait(60)
        return a_scan(BUSY)

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        rig.sampler._gpu[0]._read = scan
        rig.sampler._beat = SystemdNotifier(str(tmp_path / "notify"), 1_000_000).alive
        thread = threading.Thread(target=rig.sampler.run, daemon=True)
        thread.start()
        assert hanging.wait(60)
        listener.settimeout(0)
        with pytest.raises(BlockingIOError):
            listener.recv(100)
        hang.set()
        listener.settimeout(60)
        assert listener.recv(100) == b"WATCHDOG=1"
        rig.sampler.stop()
        thread.join(60)
