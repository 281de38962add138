"""The advisor's event loop, apart from what its requests mean."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpuwaste.advisor.advisor_counters import Counters
from gpuwaste.advisor.submit_server import Connection, IntakeLimits, Server, SubmitHandler
from gpuwaste.core.clock import SystemClock


class _Nobody(SubmitHandler):
    """Answers nothing: no request comes here."""

    def answer(self, exchanges: Sequence[Connection]) -> None:
        del exchanges

    def turned_away(self, exchange: Connection, why: str) -> bytes:
        del exchange, why
        return b""

    def tick(self, now_us: int) -> bool:
        del now_us
        return False


def test_call_after_the_end_writes_into_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is late with its call fails not, and what was opened meanwhile under that number is untouched."""
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        listener.listen()
        listener.settimeout(0)
        server = Server(listener, _Nobody(), SystemClock(), IntakeLimits(), Counters())
        done: list[str] = []
        server.call(lambda: done.append("before"))
        server.call(server.stop)
        server.run()
        files = [os.open(f"file{number}", os.O_CREAT | os.O_RDWR) for number in range(4)]
        server.call(lambda: done.append("after"))
        server.stop()
        assert done == ["before"]
        assert [os.fstat(file).st_size for file in files] == [0] * 4
        for file in files:
            os.close(file)
