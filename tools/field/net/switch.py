"""A switch in a process: forwards Ethernet frames between TAP devices, by rules.

python -m tools.field.net.switch SEED
Orders are lines of JSON on standard input, each answered by one line: {"plug": PORT, "mac": MAC, "into": PID} makes a
device in the network namespace of a process, {"cut": [[PORT, PORT]], "delay_s": S, "loss": SHARE} sets the rules, {}
asks for the counts. It ends with its standard input. Some kernels have no netem; this needs /dev/net/tun alone.
"""

import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import time
from typing import Any, Final

from tools.field.boot import LINK
from tools.field.net.frames import Rules, Way

_TUNSETIFF: Final = 0x400454CA
_TAP_WITHOUT_HEADER: Final = 0x1002
_LONGEST: Final = 65536
_AT_ONCE: Final = 64
"""Frames of one port before the others have their turn."""


class Switch:
    """Its ports by name, and the frames between them."""

    def __init__(self, seed: int) -> None:
        self._way = Way({}, seed)
        self._files: dict[str, int] = {}

    def serve(self) -> None:
        """Forward until standard input ends."""
        orders = b""
        while True:
            ports = {file: port for port, file in self._files.items()}
            readable, _, _ = select.select([0, *ports], [], [], self._way.rest_s(time.monotonic()))
            for file in readable:
                if file:
                    self._receive(file, ports[file])
                    continue
                more = os.read(0, _LONGEST)
                if not more:
                    return
                *lines, orders = (orders + more).split(b"\n")
                for line in lines:
                    self._answer(json.loads(line))
            for port, frame in self._way.due(time.monotonic()):
                _send(self._files[port], frame)

    def _receive(self, file: int, port: str) -> None:
        for _ in range(_AT_ONCE):
            try:
                frame = os.read(file, _LONGEST)
            except OSError:  # nothing more, or the device is down
                return
            self._way.enter(frame, port, time.monotonic())

    def _answer(self, order: dict[str, Any]) -> None:
        if "plug" in order:
            self._plug(order["plug"], order["mac"], order["into"])
        elif order:
            cut = [frozenset(pair) for pair in order.pop("cut", [])]
            self._way.rules = Rules(cut=cut, **order)
        sys.stdout.write(f"{json.dumps(self._way.counts)}\n")
        sys.stdout.flush()

    def _plug(self, port: str, mac: str, into: int) -> None:
        file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(file, _TUNSETIFF, struct.pack("16sH22x", port.encode(), _TAP_WITHOUT_HEADER))
        for words in (f"link set {port} address {mac}", f"link set {port} netns {into} name {LINK}"):
            subprocess.run(["ip", *words.split()], check=True, timeout=10)
        self._files[port] = file
        self._way.ports[bytes.fromhex(mac.replace(":", ""))] = port


def _send(file: int, frame: bytes) -> None:
    try:
        os.write(file, frame)
    except OSError:  # the device is down or full: the frame is lost, as on a cable
        return


if __name__ == "__main__":
    Switch(int(sys.argv[1])).serve()
