"""An advisor that answers as a test says, and keeps what it was asked.

with ScriptedAdvisor(directory / "advisor.sock", lambda request: encode_reply(new_id, "pass", as_of=now)) as advisor:
    ...
    advisor.requests[-1]["job"]["name"]
"""

import base64
import os
import selectors
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from gpuwaste.advice.submit_frames import HEADER, MAX_REQUEST, decode_body, decode_header
from gpuwaste.core.errors import ParseError

Answer = Callable[[dict[str, Any]], bytes]
_PATIENCE_S: Final = 30.0


class ScriptedAdvisor:
    """Serves one connection at a time in a thread; `answer` gives the bytes to send, b"" for an early end."""

    def __init__(self, path: Path, answer: Answer) -> None:
        """Listen on `path`, open to all users."""
        self.path = path
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.frames: list[bytes] = []
        self.errors: list[ParseError] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        path.chmod(0o666)
        self._socket.listen(128)
        self._stop, self._stopping = os.pipe()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening and remove the socket."""
        os.write(self._stopping, b"x")
        self._thread.join(_PATIENCE_S)
        self._socket.close()
        self.path.unlink(missing_ok=True)
        for fd in (self._stop, self._stopping):
            os.close(fd)

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._stop, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._stop in ready:
                    return
                connection, _ = self._socket.accept()
                with connection:
                    connection.settimeout(_PATIENCE_S)
                    self._exchange(connection)

    def _exchange(self, connection: socket.socket) -> None:
        try:
            header = _read(connection, HEADER.size)
            body = _read(connection, decode_header(header, MAX_REQUEST))
            request = decode_body(body)
        except ParseError as error:
            self.errors.append(error)
            return
        self.frames.append(header + body)
        self.requests.append(request)
        try:
            connection.sendall(self.answer(request))
        except OSError:
            return  # the plugin has gone: its deadline passed


def _read(connection: socket.socket, size: int) -> bytes:
    """Read exactly `size` bytes. Raises ParseError where the plugin ends before."""
    data = b""
    while len(data) < size:
        try:
            piece = connection.recv(size - len(data))
        except OSError as error:
            raise ParseError("advice: a request was cut short") from error
        if not piece:
            raise ParseError("advice: a request was cut short")
        data += piece
    return data


def text_of(value: object) -> bytes:
    """Return the bytes of a text of a request, whichever of its two forms it has. Raises ParseError."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and isinstance(value.get("b64"), str):
        return base64.b64decode(value["b64"], validate=True)
    raise ParseError(f"advice: {value!r} is no text")
