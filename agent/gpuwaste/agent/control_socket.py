"""The agent's control socket: one JSON line in, one JSON line out, for root and the agent's own user."""

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gpuwaste.core.config import Config
from gpuwaste.core.errors import GpuwasteError, NoDataError, UsageError
from gpuwaste.core.text import harmless
from gpuwaste.core.unix_socket import connect_unix, require_room
from gpuwaste.net.request_server import Request, RequestLimits, RequestServer

SOCKET_NAME: Final = "agent.sock"
_MAX_BYTES: Final = 4096
_MAX_ANSWER_BYTES: Final = 64 * 1024
_LIMITS: Final = RequestLimits(end=b"\n", most=_MAX_BYTES, deadline_s=2.0, workers=4)
_REFUSED: Final = {"error": "only root and the agent's own user may do this"}
Command = Callable[[dict[str, Any]], dict[str, Any]]


class ControlServer:
    """Answers commands by name; slow and misbehaving clients do not block others."""

    def __init__(self, run_dir: Path, commands: dict[str, Command]) -> None:
        self._path = socket_of(run_dir)
        self._commands = commands
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            run_dir.mkdir(parents=True, exist_ok=True)
            self._path.unlink(missing_ok=True)
            before = os.umask(0o117)
            try:
                listener.bind(str(self._path))
            finally:
                os.umask(before)
            listener.listen()
        except OSError as error:
            listener.close()
            raise GpuwasteError(f"{self._path}: cannot be created: {error.strerror or error}") from error
        self._server = RequestServer("control", listener, self._answer, _LIMITS)

    def start(self) -> None:
        """Start to answer commands."""
        self._server.start()

    def stop(self) -> None:
        """Stop answering and remove the socket."""
        self._server.stop()
        self._path.unlink(missing_ok=True)

    def _answer(self, request: Request) -> bytes:
        allowed = request.uid in {0, os.geteuid()}
        line = request.data[:_MAX_BYTES].partition(b"\n")[0]
        return json.dumps(self._reply(line) if allowed else _REFUSED).encode() + b"\n"

    def _reply(self, line: bytes) -> dict[str, Any]:
        try:
            request = json.loads(line)
        except (ValueError, RecursionError):
            request = None
        if not isinstance(request, dict):
            return {"error": "expected one line with a JSON object of at most 4096 bytes"}
        command = self._commands.get(str(request.get("command")))
        if command is None:
            return {"error": f"unknown command; known are {', '.join(sorted(self._commands))}"}
        try:
            return command(request)
        except GpuwasteError as error:
            return {"error": str(error)}


def socket_of(run_dir: Path) -> Path:
    """Return the path of the agent's socket. Raises ConfigError where it is too long."""
    path = run_dir / SOCKET_NAME
    require_room("[common] run_dir", path)
    return path


def ask_agent(config: Config, request: dict[str, Any], timeout_s: float = 60.0) -> str:
    """Send a command to this node's agent and return its answer as lines `key: value`; raises as agent_answer."""
    answer = agent_answer(config, request, timeout_s)
    return "".join(harmless(f"{key}: {value}") + "\n" for key, value in answer.items())


def agent_answer(config: Config, request: dict[str, Any], timeout_s: float = 60.0) -> dict[str, Any]:
    """Send a command to the agent of this node and return its answer.

    Raises NoDataError where no agent listens, UsageError with the agent's message where it refuses.
    """
    path = socket_of(Path(config.common.run_dir))
    try:
        with connect_unix(path, timeout_s) as server:
            server.sendall(json.dumps(request).encode() + b"\n")
            line = _read_line(server, _MAX_ANSWER_BYTES, time.monotonic() + timeout_s)
    except OSError as error:
        raise NoDataError(f"{path}: the agent does not answer: {error.strerror or error}") from error
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NoDataError(f"{path}: the answer is cut off, or not from an agent") from error
    if not isinstance(answer, dict) or "error" in answer:
        raise UsageError(str(answer.get("error")) if isinstance(answer, dict) else "the agent's answer is no object")
    return answer


def release_seconds(request: dict[str, Any]) -> float:
    """Return the seconds of a release request. Raises UsageError."""
    seconds = request.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 86400:  # noqa: PLR2004 a day
        raise UsageError("release: seconds must be a number from 0 to 86400")
    return float(seconds)


def _read_line(peer: socket.socket, most: int, until_s: float) -> bytes:
    """Read up to a newline; a line that is too long or too slow is returned cut."""
    data = b""
    while b"\n" not in data and len(data) < most:
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            break
        peer.settimeout(left_s)
        try:
            part = peer.recv(most - len(data))
        except TimeoutError:
            break
        if not part:
            break
        data += part
    return data.partition(b"\n")[0]
