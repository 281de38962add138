"""DnsRecorder: a name server on 127.0.0.1 that answers every question and remembers who asked what.

Each name has the address 192.0.2.53 (RFC 5737: documentation, nobody's), so that whoever asks goes on and connects,
which a `PacketRecorder` sees. Format of the messages: RFC 1035, section 4.
"""

import socket
import struct
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

ANSWER: Final = "192.0.2.53"
PORT: Final = 53
_HEADER: Final = struct.Struct(">6H")
_A: Final = 1
_RESPONSE: Final = 0x8180  # an answer, recursion available, no error
_NAME_ABOVE: Final = 0xC00C  # a pointer to the question's name, behind the header
_LARGEST: Final = 4096
_LOOK_S: Final = 0.2  # so often it looks whether the block has ended


@dataclass(frozen=True, slots=True)
class Question:
    """One question, and the program that asked it: its command line, empty where it had ended."""

    name: str
    program: str


class DnsRecorder:
    """Answers on port 53 of 127.0.0.1 from the start of the block to its end."""

    def __init__(self) -> None:
        self._found: list[Question] = []
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(_LOOK_S)
        self._thread = threading.Thread(target=self._serve, name="dns recorder", daemon=True)

    def __enter__(self) -> Self:
        self._socket.bind(("127.0.0.1", PORT))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        self._socket.close()

    def questions(self) -> list[Question]:
        """Return what was asked so far, in order."""
        with self._lock:
            return list(self._found)

    def _serve(self) -> None:
        while not self._end.is_set():
            try:
                message, asker = self._socket.recvfrom(_LARGEST)
            except TimeoutError:
                continue
            name, end = read_name(message)
            with self._lock:  # before the answer: the program waits for it, so it can still be found
                self._found.append(Question(name, program_of_port(asker[1])))
            self._socket.sendto(_answer(message, end), asker)


def read_name(message: bytes) -> tuple[str, int]:
    """Return the name that a query asks for, and where its type begins; "" for what is no query."""
    labels, at = [], _HEADER.size
    while at < len(message) and (length := message[at]):
        labels.append(message[at + 1 : at + 1 + length].decode("ascii", "replace"))
        at += 1 + length
    return ".".join(labels), at + 1


def _answer(message: bytes, end: int) -> bytes:
    """Return the answer: the address for a question of type A, no records for any other."""
    kind = int.from_bytes(message[end : end + 2], "big")
    header = _HEADER.pack(int.from_bytes(message[:2], "big"), _RESPONSE, 1, int(kind == _A), 0, 0)
    record = struct.pack(">HHHIH", _NAME_ABOVE, _A, 1, 60, 4) + socket.inet_aton(ANSWER) if kind == _A else b""
    return header + message[_HEADER.size : end + 4] + record


def program_of_port(port: int) -> str:
    """Return the command line of the process that has a UDP socket at a local port of this network; "" for none."""
    inodes = set()
    for table in ("udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
        except OSError:
            continue  # it has ended meanwhile
    return ""
