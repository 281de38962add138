"""Something that answers where a hub should be, on TCP, in one of several evil ways."""

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

HOSTILE: Final = "\x1b]0;owned\x07\x1b[2J\u202e=1+1\r\nX: y\x00\x85\ud800"
_NAMES: Final = ("document", "error", "recorded", "runs", "jobs", "predictions", "version", "events", "user", "mail")
_JOB: Final = {"cluster": "gw", "job_id": 7, "submit": 1, "name": HOSTILE, "user": HOSTILE, "state": "FAILED"}
_EVENT: Final = {"seq": 1, "kind": "ended", "cluster": "gw", "jobid": 7, "start": 1, "at": 2, "job": _JOB, "use": None}


def _text(value: Any) -> Callable[[int], bytes]:
    return lambda _: json.dumps(value).encode()


def _events(count: int) -> bytes:
    """Return a full page, whatever was asked, that never goes on."""
    return json.dumps({"events": [_EVENT] * count, "accounting": {"lag_s": -1e400}}).encode()


# Each takes the limit that was asked for, and returns the body of a 200.
WAYS: Final[dict[str, Callable[[int], bytes]]] = {
    "empty": lambda _: b"",
    "binary": lambda _: b"\x00\xff\xfe" * 1000,
    "deep": lambda _: b'{"a":' * 200_000,
    "a list": _text([HOSTILE]),
    "an empty object": _text({}),
    "hostile texts": _text(dict.fromkeys(_NAMES, HOSTILE)),
    "wrong types": _text(
        {"document": "report", "jobs": [{"name": HOSTILE}], "runs": [None], "events": [7], "totals": 3}
    ),
    "infinite numbers": lambda _: b'{"events":[{"seq":Infinity,"kind":"ended"}],"standing":{"x":{"precision":NaN}}}',
    "wrong events": _text({"events": [{**_EVENT, "job": {**_JOB, "job_id": {}, "submit": [], "user": 5}}]}),
    "hostile events": _text({"events": [{**_EVENT, "use": {"used_ratio": 9, "gpus_active": -1, "coverage": 7}}]}),
    "no progress": _events,
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer."""
        limit = self.path.partition("limit=")[2].partition("&")[0]
        body = self.server.way(int(limit) if limit.isdigit() else 1)  # type: ignore[attr-defined]
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Gpuwaste-Ack", "MUNGE:AAAA:")
            self.end_headers()
            self.wfile.write(body)

    def do_POST(self) -> None:
        """Read the body, and answer as ever."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class EvilHub(socketserver.ThreadingTCPServer):
    """Answers everything in its `way`."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.way = WAYS["empty"]

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextlib.contextmanager
def evil_hub() -> Iterator[EvilHub]:
    """Serve until the block ends."""
    with EvilHub() as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
