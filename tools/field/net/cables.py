"""The network of the machines: a namespace for each, plugged into one switch; cut, slowed down and mended at run time.

All of it lies in namespaces of its own; this host has no link to it and none of its addresses.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Self

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.testing.cluster_process import wait_until
from tools.field.boot import LINK, RESOLVER
from tools.trees import store

SEED: Final = 7
SLOW: Final = (0.2, 0.05)
"""Seconds that a frame takes, and the share of frames that is lost, of a slow network."""
_GATEWAY: Final = "02:00:00:00:00:fe"
"""No port has it: what is sent to elsewhere ends in the switch, after the watch of its machine has seen it."""
_START_S: Final = 20.0
_WORDS: Final = (
    "link set lo up",
    f"address add {RESOLVER}/32 dev lo",
    f"link set {LINK} up",
    f"address add 10.99.0.%(number)d/24 dev {LINK}",
    f"-6 address add fd00:99::%(number)d/64 dev {LINK} nodad",
    f"neighbor add 10.99.0.254 lladdr {_GATEWAY} dev {LINK} nud permanent",
    f"-6 neighbor add fd00:99::fe lladdr {_GATEWAY} dev {LINK} nud permanent",
    "route add default via 10.99.0.254",
    "-6 route add default via fd00:99::fe",
)


class Cables:
    """The switch and what is plugged into it; a context, at whose end all is gone."""

    def __init__(self) -> None:
        self._spaces: dict[str, subprocess.Popen[bytes]] = {}
        argv = ["unshare", "--net", "--", sys.executable, "-m", "tools.field.net.switch", str(SEED)]
        self._switch = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=store.REPOSITORY,
        )  # fmt: skip
        if self._switch.stdin is None or self._switch.stdout is None:
            raise GpuwasteError("field: no pipes to the switch")
        self._orders, self._answers = self._switch.stdin, self._switch.stdout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._switch.kill()
        self._switch.wait(timeout=_START_S)
        for holder in self._spaces.values():
            holder.kill()
            holder.wait(timeout=_START_S)

    def plug(self, name: str, number: int) -> str:
        """Make a machine's network with its address, and plug it in; return the path of its namespace."""
        argv = ["setpriv", "--pdeathsig", "KILL", "--", "unshare", "--net", "--", "sleep", "infinity"]
        holder = self._spaces[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        path = Path(f"/proc/{holder.pid}/ns/net")
        own = Path("/proc/self/ns/net").readlink()

        def apart() -> bool:
            with contextlib.suppress(OSError):
                return path.readlink() != own
            return False

        wait_until(apart, _START_S, f"the network of {name}")
        self._order({"plug": name, "mac": f"02:00:00:00:00:{number:02x}", "into": holder.pid})
        for words in _WORDS:
            command = ["ip", *(words % {"number": number}).split()]
            done = subprocess.run(
                ["nsenter", f"--net={path}", "--", *command], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise GpuwasteError(f"field: network of {name}: {' '.join(command)}: {done.stderr.strip()}")
        return str(path)

    @contextlib.contextmanager
    def cut(self, pairs: Sequence[tuple[str, str]]) -> Iterator[None]:
        """Cut all connections between these pairs for a time."""
        self._order({"cut": pairs})
        try:
            yield
        finally:
            self._order({"cut": []})

    @contextlib.contextmanager
    def slow(self) -> Iterator[None]:
        """Delay every frame, in both directions, and lose some, for a time."""
        delay_s, loss = SLOW
        self._order({"delay_s": delay_s, "loss": loss})
        try:
            yield
        finally:
            self._order({"cut": []})

    def counts(self) -> dict[str, int]:
        """Return how many frames were sent, lost, cut off, and addressed to no port, since the start."""
        return self._order({})

    def _order(self, order: dict[str, object]) -> dict[str, int]:
        answer = ""
        with contextlib.suppress(BrokenPipeError):
            self._orders.write(f"{json.dumps(order)}\n")
            self._orders.flush()
            answer = self._answers.readline()
        if not answer:
            raise GpuwasteError(f"field: the switch ended at {order}: its reason stands above")
        return dict(json.loads(answer))
