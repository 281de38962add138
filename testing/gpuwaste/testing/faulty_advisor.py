"""Plays an advisor at a Unix socket that is at fault in one of many ways: python -m ... SOCKET WAY.

Ways are the functions below; each handles one connection. "deaf" never accepts: its backlog is full at once. It runs
until SIGTERM, makes the file NAME.ready beside its socket when it listens, and adds a byte to NAME.asked for each
connection.
"""

import contextlib
import itertools
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gpuwaste.advice.submit_frames import HEADER, VERSION, encode_frame

_ID: Final = "0123456789abcdef"
_BAD_CODES: Final = itertools.cycle((-1, 2**31, 2**64, 1.5, float("nan"), "7", None))
_HOSTILE: Final = ("\u001b[2J\u001b]0;owned\u0007", "%s%n%x" * 20, "\u0000\r\n\t\u202e", "x" * 900)
_held: list[socket.socket] = []


def refuse_all(link: socket.socket) -> None:
    """Reject every job, in good form."""
    _request(link)
    link.sendall(_rejection())


def hung(link: socket.socket) -> None:
    """Accept, and never answer."""
    _held.append(link.dup())


def slow(link: socket.socket) -> None:
    """Reject, long after the deadline."""
    reply = _rejection()
    time.sleep(1.0)
    link.sendall(reply)


def drip(link: socket.socket) -> None:
    """Reject, one byte at a time: each comes within the deadline, the whole does not."""
    _request(link)
    for byte in _rejection():
        link.sendall(bytes([byte]))
        time.sleep(0.01)


def garbage(link: socket.socket) -> None:
    """Answer bytes that are no frame."""
    _request(link)
    link.sendall(os.urandom(700))


def no_json(link: socket.socket) -> None:
    """Answer a good header, then bytes that are no JSON."""
    _request(link)
    link.sendall(HEADER.pack(400, VERSION) + b'{"action":"reject","id":"' + b"\xff\x00" * 200)


def half(link: socket.socket) -> None:
    """Answer half a rejection and close."""
    _request(link)
    reply = _rejection()
    link.sendall(reply[: len(reply) // 2])


def megabyte(link: socket.socket) -> None:
    """Answer a megabyte, and say so."""
    _request(link)
    body = json.dumps({"v": 1, "id": _ID, "action": "reject", "code": 0, "msg": ["x" * 1_000_000]}).encode()
    link.sendall(HEADER.pack(len(body), VERSION) + body)


def short_header(link: socket.socket) -> None:
    """Answer a rejection whose header says another length."""
    _request(link)
    body = _rejection()[HEADER.size :]
    link.sendall(HEADER.pack(len(body) - 7, VERSION) + body)


def other_version(link: socket.socket) -> None:
    """Answer a rejection in another version of the protocol."""
    _request(link)
    link.sendall(encode_frame(_reject(), VERSION + 1))


def unknown_action(link: socket.socket) -> None:
    """Answer an action that nobody knows."""
    _request(link)
    link.sendall(encode_frame(_reject() | {"action": "REJECT!"}))


def wrong_types(link: socket.socket) -> None:
    """Answer a rejection whose parts have wrong types, numbers out of range and NaN."""
    _request(link)
    bad = _reject() | {"code": next(_BAD_CODES), "as_of": "now", "msg": {"a": [1e999]}, "id": 7}
    body = json.dumps(bad).encode()
    link.sendall(HEADER.pack(len(body), VERSION) + body)


def hostile(link: socket.socket) -> None:
    """Warn with terminal controls, format strings and an id that would break out of the admin_comment."""
    _request(link)
    warning = {"v": 1, "id": "x;gw=0123456789a", "action": "warn", "code": 0, "msg": list(_HOSTILE[:3])}
    link.sendall(encode_frame(warning | {"as_of": int(time.time())}))


def closing(link: socket.socket) -> None:
    """Close at once, without a look at the request."""


def _reject() -> dict[str, Any]:
    lines = ["a rejection that nobody should see"]
    return {"v": 1, "id": _ID, "action": "reject", "code": 0, "msg": lines, "as_of": int(time.time())}


def _rejection() -> bytes:
    return encode_frame(_reject())


def _request(link: socket.socket) -> dict[str, Any]:
    """Read one request to its end."""
    data = b""
    while len(data) < HEADER.size or len(data) < HEADER.size + HEADER.unpack(data[: HEADER.size])[0]:
        part = link.recv(65536)
        if not part:
            return {}
        data += part
    request: dict[str, Any] = json.loads(data[HEADER.size :])
    return request


WAYS: Final[dict[str, Callable[[socket.socket], None]]] = {
    way.__name__.replace("_", "-"): way
    for way in (
        refuse_all, hung, slow, drip, garbage, no_json, half, megabyte, short_header, other_version,
        unknown_action, wrong_types, hostile, closing,
    )
}  # fmt: skip


def main() -> None:
    """Serve until SIGTERM."""
    path, way = Path(sys.argv[1]), sys.argv[2]
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(0 if way == "deaf" else 256)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if way == "deaf":
        _fill(path)
    path.with_suffix(".ready").touch()
    if way == "deaf":
        signal.pause()
    with path.with_suffix(".asked").open("ab", buffering=0) as asked:
        while True:
            link, _ = listener.accept()
            asked.write(b".")
            threading.Thread(target=_serve, args=(WAYS[way], link), daemon=True).start()


def _fill(path: Path) -> None:
    """Fill the backlog of the socket, so that the next connection waits."""
    while True:
        one = socket.socket(socket.AF_UNIX)
        one.settimeout(0)
        try:
            one.connect(str(path))
            _held.append(one)
        except BlockingIOError:
            return


def _serve(way: Callable[[socket.socket], None], link: socket.socket) -> None:
    with link, contextlib.suppress(OSError):
        way(link)


if __name__ == "__main__":
    main()
