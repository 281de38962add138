"""Python on a host of its own: `python -m gpuwaste.testing.own_host ARGUMENTS` runs `python ARGUMENTS` there.

Its processes, network (loopback only), host name and /proc are separate, so clusters with equal node names, addresses
and ports run at the same time, and no process outlives that Python: when it ends in any way, the kernel ends the rest.
Files are those of this host.
"""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from typing import Final

from gpuwaste.testing.patience import patient

_SPACES: Final = ("unshare", "--fork", "--kill-child", "--mount-proc", "--pid", "--net", "--uts", "--ipc")
_SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS
_SET_ADDRESS: Final = 0x8916  # SIOCSIFADDR
_UP: Final = 1  # IFF_UP
_ADDRESS: Final = "10.1.0.1"  # glibc resolves names only where an interface has an address other than 127.0.0.1


def available() -> bool:
    """Whether this process may make such a host."""
    try:
        return subprocess.run([*_SPACES, "true"], capture_output=True, timeout=patient(30), check=False).returncode == 0
    except OSError:
        return False


def command() -> str:
    """Return the shell words before the arguments of a Python on a host of its own."""
    return f"{sys.executable} -m {__spec__.name}"


def main() -> None:
    """Become process 1 of a new host, bring its loopback up, run Python there and collect the orphans."""
    if os.getpid() != 1:
        os.execvp(_SPACES[0], [*_SPACES, sys.executable, "-m", __spec__.name, *sys.argv[1:]])  # noqa: S606
    with socket.socket() as probe:
        fcntl.ioctl(probe, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
        address = struct.pack("16sH2x4s8x", b"lo:1", socket.AF_INET, socket.inet_aton(_ADDRESS))
        fcntl.ioctl(probe, _SET_ADDRESS, address)
    child = subprocess.Popen([sys.executable, *sys.argv[1:]]).pid
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the child decides
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
