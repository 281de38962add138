"""In the virtual machine: runs the commands that arrive at a port, one after the other: port.py DEVICE.

A request is a line of JSON, {"id", "argv"}; its answer is one too, {"id", "returncode", "stdout", "stderr"}. Needs
nothing but Python's own library.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, Final

_IDLE_S: Final = 0.05
_LIMIT_B: Final = 1 << 20
"""Of each output: the end is kept."""


def main() -> None:
    """Serve until killed; who asks may go and come again."""
    port = os.open(sys.argv[1], os.O_RDWR)
    waiting = b""
    while True:
        try:
            got = os.read(port, 1 << 16)
        except OSError:
            got = b""
        if not got:
            time.sleep(_IDLE_S)
            continue
        *lines, waiting = (waiting + got).split(b"\n")
        for line in lines:
            if answer := _answered(line):
                _write(port, answer)


def _answered(line: bytes) -> bytes:
    """Run what a line asks for and return the line of its answer; b"" for what is no request."""
    try:
        request = json.loads(line)
        argv = [str(word) for word in request["argv"]]
    except (ValueError, KeyError, TypeError):
        return b""
    return json.dumps({"id": request["id"], **_run(argv)}).encode() + b"\n"


def _run(argv: list[str]) -> dict[str, Any]:
    # Files, not pipes: a daemon that the command leaves behind would keep a pipe open.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            code = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False).returncode
        except OSError as error:
            return {"returncode": 127, "stdout": "", "stderr": str(error)}
        return {"returncode": code, "stdout": _end(out), "stderr": _end(err)}


def _end(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LIMIT_B))
    return file.read().decode(errors="replace")


def _write(port: int, data: bytes) -> None:
    """Write an answer whole, unless who asked is gone."""
    while data:
        try:
            data = data[os.write(port, data[:4096]) :]
        except OSError:
            return


if __name__ == "__main__":
    main()
