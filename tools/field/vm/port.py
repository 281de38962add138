"""Asks the program in the virtual machine, over the socket that is the other end of its port."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.errors import GpuwasteError

_SLACK_S: Final = 60.0
"""What the machine may need for the way of a request and its answer."""
_POLL_S: Final = 10.0
_NUMBERS: Final = count(time.time_ns())
"""Of requests: what an older one is answered too late is no answer to this one."""


def ask(path: Path, argv: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run a command in the machine, which itself ends it after `timeout_s`. Raises GpuwasteError."""
    deadline = time.monotonic() + timeout_s + _SLACK_S
    number = next(_NUMBERS)
    try:
        with _connected(path) as port:
            port.sendall(json.dumps({"id": number, "argv": list(argv)}).encode() + b"\n")
            for answer in _answers(port, deadline):
                if answer.get("id") == number:
                    return subprocess.CompletedProcess(
                        list(argv), int(answer["returncode"]), str(answer["stdout"]), str(answer["stderr"])
                    )
    except OSError as error:
        raise GpuwasteError(f"field: {path}: {error}: has the virtual machine ended?") from error
    raise GpuwasteError(f"field: {path}: the virtual machine has not answered within {timeout_s + _SLACK_S:g} s")


@contextmanager
def _connected(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as port:
        port.settimeout(_POLL_S)
        port.connect(str(path))
        yield port


def _answers(port: socket.socket, deadline: float) -> Iterator[dict[str, Any]]:
    """Yield answers until a time. Raises OSError where the other end closes."""
    waiting = b""
    while time.monotonic() < deadline:
        try:
            got = port.recv(1 << 16)
        except TimeoutError:
            continue
        if not got:
            raise ConnectionResetError("closed")
        *lines, waiting = (waiting + got).split(b"\n")
        for line in lines:
            try:
                answer = json.loads(line)
            except ValueError:
                continue
            if isinstance(answer, dict):
                yield answer
