"""A flood from many loopback addresses, in a process of its own: it ends with its standard input.

Arguments: port, connections, spread (few: 254 addresses to a /24 network, many: one), the beginning of a request (hex).
Each connection that is cut is opened again from its own address; a line with the number of cuts ends the output.
"""

import contextlib
import resource
import selectors
import socket
import sys

PACE = 64  # connections opened before the cut ones are looked for


def address(number: int, spread: str) -> str:
    """Return the loopback address of a connection: 254 to a network from 127.66.0.0 on, or one in each."""
    network, host = divmod(number, 254) if spread == "few" else (number, 0)
    return f"127.{66 + network // 256}.{network % 256}.{host + 1}"


def opened(port: int, source: str, beginning: bytes) -> socket.socket | None:
    """Return a connection that said the beginning of a request and nothing more; None where it was not taken."""
    sock = socket.socket()
    try:
        sock.setsockopt(socket.SOL_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
        sock.bind((source, 0))
        sock.settimeout(5)
        sock.connect(("127.0.0.1", port))
        sock.sendall(beginning)
        sock.settimeout(0)
    except OSError:
        sock.close()
        return None
    return sock


def main() -> None:
    """Flood until the standard input ends."""
    port, count, spread, beginning = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], bytes.fromhex(sys.argv[4])
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    watched, cuts = selectors.DefaultSelector(), 0
    watched.register(sys.stdin, selectors.EVENT_READ)
    missing = list(range(count))
    unsaid = count  # connections still to be opened for the first time
    while True:
        for number in missing[:PACE]:
            if (sock := opened(port, address(number, spread), beginning)) is not None:
                watched.register(sock, selectors.EVENT_READ, number)
        missing = missing[PACE:]
        unsaid -= PACE
        if -PACE < unsaid <= 0:
            print("open", flush=True)  # noqa: T201
        for key, _ in watched.select(0 if missing else 0.2):
            if key.fileobj is sys.stdin:
                print(cuts)  # noqa: T201
                return
            with contextlib.suppress(OSError):
                if key.fileobj.recv(4096):  # type: ignore[union-attr]
                    continue
            watched.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
            missing.append(key.data)
            cuts += 1


if __name__ == "__main__":
    main()
