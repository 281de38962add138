"""An advisor that says what a check wants, in this process: for the answers whose effect is the subject."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.core.verdict import Action
from gpuwaste.wire.advice import HEADER, decode_body, decode_header, encode_reply

Request = dict[str, Any]
Answer = Callable[[Request], bytes]
TOKEN: Final = "0123456789abcdef"  # noqa: S105 a verdict's id
_PATIENCE_S: Final = 10.0


def says(action: Action, *lines: str, code: int = 0, verdict_id: str = TOKEN) -> Answer:
    """Return an answer that is the same for every request."""
    return lambda _: encode_reply(verdict_id, action, lines, code=code, as_of=int(time.time()))


class ScriptedAdvisor:
    """Listens while the `with` lasts; `requests` are those that came, in their order."""

    def __init__(self, path: Path, answer: Answer) -> None:
        self.path = path
        self.answer = answer
        self.requests: list[Request] = []
        self.errors: list[str] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self.path.unlink(missing_ok=True)
        self._listener.bind(str(self.path))
        self.path.chmod(0o666)
        self._listener.listen(256)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # accept returns with an error
        self._listener.close()
        self._thread.join(_PATIENCE_S)

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        """Answer one connection; a request that is none is kept as an error for the check to see."""
        with link:
            try:
                link.settimeout(_PATIENCE_S)
                request = decode_body(_exactly(link, decode_header(_exactly(link, HEADER.size))))
                self.requests.append(request)
                link.sendall(self.answer(request))
            except (OSError, GpuwasteError) as error:
                self.errors.append(str(error))


def _exactly(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = link.recv(size - len(data))
        if not part:
            raise GpuwasteError(f"a request ended after {len(data)} of {size} bytes")
        data += part
    return data
