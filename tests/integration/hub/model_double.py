"""A language model's server on loopback, real HTTP, that answers as a script says."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from gpuwaste.core.site_config import AnalyticsConfig


@dataclass(frozen=True)
class Raw:
    """An answer that is no completion: bytes as they are."""

    body: bytes
    status: int = 200
    promised: int | None = None
    """Content-Length, where it is not that of the body."""


Script = Callable[[str], str | Raw]


class ModelDouble(ThreadingHTTPServer):
    """Answers each sentence by `script`; `asked` has the bodies of the requests."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.asked: list[dict[str, Any]] = []
        self.go_on = threading.Event()  # cleared: answers wait
        self.go_on.set()

    def config(self) -> AnalyticsConfig:
        """Return the configuration that names this server."""
        return AnalyticsConfig(f"http://127.0.0.1:{self.server_port}/v1", "liar")

    def sentences(self) -> list[str]:
        """Return the sentences that were asked for."""
        return [asked["messages"][-1]["content"] for asked in self.asked]

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet: who asked has hung up."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelDouble

    def do_POST(self) -> None:
        """Answer one sentence."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({**asked, "path": self.path})
        self.server.go_on.wait(60)
        found = self.server.script(asked["messages"][-1]["content"])
        if isinstance(found, str):
            found = Raw(json.dumps({"choices": [{"message": {"role": "assistant", "content": found}}]}).encode())
        with suppress(OSError):
            self.send_response(found.status)
            self.send_header("Content-Length", str(len(found.body) if found.promised is None else found.promised))
            self.end_headers()
            self.wfile.write(found.body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@contextmanager
def running_model(script: Script) -> Iterator[ModelDouble]:
    """Run a model's server on a free port."""
    double = ModelDouble(script)
    thread = threading.Thread(target=double.serve_forever, daemon=True)
    thread.start()
    try:
        yield double
    finally:
        double.go_on.set()
        double.shutdown()
        thread.join(30)
        double.server_close()
