"""pmproxy's answers: what is read, what is unknown, and what is no answer at all."""

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpuwaste.agent.bounded_calls import CollectorError
from gpuwaste.agent.collectors.pcp import PcpCollector, parse_fetch
from gpuwaste.testing.page_server import PageServer
from gpuwaste.testing.patience import patient


def an_answer(**fields: list[Any]) -> bytes:
    """Return a fetch answer with one value for each card, by metric."""
    values = [
        {"name": f"nvidia.{name}", "instances": [{"instance": i, "value": v} for i, v in enumerate(column)]}
        for name, column in fields.items()
    ]
    return json.dumps({"context": 1, "values": values}).encode()


@pytest.fixture
def pmproxy() -> Iterator[Callable[[int, bytes], PcpCollector]]:
    """Return a function that makes a collector whose pmproxy gives this answer."""
    servers: list[PageServer] = []

    def start(status: int, body: bytes) -> PcpCollector:
        servers.append(PageServer(lambda: body, status))
        return PcpCollector(servers[-1].url)

    yield start
    for server in servers:
        server.close()


def test_cards_are_read_by_uuid(pmproxy: Callable[[int, bytes], PcpCollector]) -> None:
    """Each card's values come under its UUID; what PCP answers with an error code is unknown, never 0."""
    body = an_answer(
        carduuid=["GPU-a", "GPU-b"],
        cardname=["A100", "A100"],
        gpuactive=[55, -12352],
        memused=[5, 6],
        memtotal=[50, 60],
        power=[70_000, -1],
        energy=[9, 9],
    )
    scan = pmproxy(200, body).scan()
    one, other = scan.readings["GPU-a"], scan.readings["GPU-b"]
    assert (one.util_pct, one.mem_used_b, one.power_mw, one.energy_mj, one.pids) == (55.0, 5, 70_000, 9, None)
    assert (other.util_pct, other.reason, other.power_mw) == (None, "not_supported", None)
    assert [(gpu.uuid, gpu.index, gpu.minor) for gpu in scan.gpus] == [("GPU-a", 0, None), ("GPU-b", 1, None)]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"success":false}'),
        (200, b""),
        (200, b"<html>"),
        (200, b"[]"),
        (200, b'{"values":[{"name":"nvidia.gpuactive"}]}'),
        (200, b'{"values":[]}'),
        (200, b'{"values":[{"name":"nvidia.carduuid","instances":[{"instance":"x","value":7}]}]}'),
    ],
)
def test_what_is_no_answer_is_a_failure_of_this_collector(
    pmproxy: Callable[[int, bytes], PcpCollector], status: int, body: bytes
) -> None:
    """Errors, other services and a PCP without GPUs are CollectorError, whose text names the address."""
    with pytest.raises(CollectorError, match=r"PCP: http://127"):
        pmproxy(status, body).scan()


def test_no_pmproxy_is_a_failure_of_this_collector() -> None:
    """Where nothing listens the failure comes at once."""
    with pytest.raises(CollectorError, match="no answer"):
        PcpCollector("http://127.0.0.1:1").scan()


def test_values_of_the_wrong_type_are_unknown() -> None:
    """A string or a flag where a number belongs is None."""
    card = parse_fetch(an_answer(carduuid=["GPU-a"], gpuactive=["many"]), "here")[0]
    assert card["util_pct"] == "many"


def test_an_infinite_value_takes_nothing_else_away(pmproxy: Callable[[int, bytes], PcpCollector]) -> None:
    """JSON of 1e999 is infinity: no number of that GPU, whose other values stay."""
    body = an_answer(carduuid=["GPU-a"], power=[7], gpuactive=[5]).replace(b"7", b"1e999")
    reading = pmproxy(200, body).scan().readings["GPU-a"]
    assert (reading.power_mw, reading.util_pct) == (None, 5.0)


def test_an_answer_that_drips_costs_one_reading_each_time() -> None:
    """A server that never ends its answer is given up at the deadline: its connection is closed, then asked again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        collector = PcpCollector(f"http://127.0.0.1:{server.getsockname()[1]}/", 0.05)
        for _ in range(2):
            with pytest.raises(CollectorError, match=r"no complete answer within 0\.05 s"):
                collector.scan()
            peer, _address = server.accept()
            peer.settimeout(patient(20))
            with peer:
                while peer.recv(4096):
                    pass


def test_a_huge_answer_is_refused(pmproxy: Callable[[int, bytes], PcpCollector]) -> None:
    """A body over the bound is one line that says so, and is not parsed."""
    with pytest.raises(CollectorError, match="more than 4194304 bytes"):
        pmproxy(200, b" " * (4 * 1024 * 1024 + 1)).scan()
