"""An HTTP server on loopback that answers each GET with the same kind of page: a peer that a collector reads."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class PageServer:
    """Serves from its making until `close`; `page` gives the body of each answer."""

    def __init__(self, page: Callable[[], bytes], status: int = 200) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(page())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class names it
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        """The address, with a slash at its end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
