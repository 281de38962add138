"""Who has to go where too many connections wait for their request."""

import time

import pytest

from gpuwaste.net.connection_limiter import AGES_S, ConnectionLimiter, network_of


class Named:
    """A connection that notes whether it was cut."""

    def __init__(self) -> None:
        self.cut = 0

    def cut_off(self) -> None:
        self.cut += 1


class Now:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def some(limiter: ConnectionLimiter, peers: list[str]) -> list[Named]:
    """Let a new connection of each peer wait."""
    connections = [Named() for _ in peers]
    for peer, connection in zip(peers, connections, strict=True):
        limiter.wait_for(peer, connection)
    return connections


def test_the_peer_with_the_most_loses_its_oldest() -> None:
    """Who has one connection keeps it, however many others have; a connection that is counted keeps its age."""
    limiter = ConnectionLimiter(4)
    (single,) = some(limiter, ["10.0.0.1"])
    flood = [Named() for _ in range(6)]
    for connection in flood:
        limiter.wait_for("10.0.0.2", connection)
        limiter.wait_for("10.0.0.2", flood[0]) if not flood[0].cut else None
    assert [connection.cut for connection in flood] == [1, 1, 1, 0, 0, 0]
    assert (single.cut, len(limiter), limiter.cut) == (0, 4, 3)
    limiter.have("10.0.0.2", flood[5])
    limiter.have("10.0.0.2", flood[5])
    assert len(limiter) == 3


def test_many_addresses_of_one_network_are_one_flood() -> None:
    """Three connections of one host stay while 200 hosts of another network cut each other's."""
    limiter = ConnectionLimiter(50)
    honest = some(limiter, ["10.1.0.1"] * 3)
    flood = some(limiter, [f"10.2.0.{host}" for host in range(200)])
    assert [connection.cut for connection in honest] == [0, 0, 0]
    assert sum(connection.cut for connection in flood) == 153


def test_an_old_connection_outlives_a_young_flood_of_one_network() -> None:
    """Who waits for long with one connection keeps it while another network opens new ones without end."""
    now = Now()
    limiter = ConnectionLimiter(50, now)
    (slow,) = some(limiter, ["10.1.0.1"])
    now.s = AGES_S[-1] + 1
    some(limiter, [f"10.2.0.{host}" for host in range(200)])
    assert slow.cut == 0


def test_many_networks_of_one_address_pay_by_their_age() -> None:
    """A network of one address each: those that wait for longest go, twelve new ones of one host are left alone."""
    now = Now()
    limiter = ConnectionLimiter(50, now)
    flood = some(limiter, [f"10.2.{network}.1" for network in range(50)])
    now.s = AGES_S[0]
    honest = some(limiter, ["10.1.0.1"] * 12)
    assert [connection.cut for connection in flood] == [1] * 12 + [0] * 38
    assert sum(connection.cut for connection in honest) == 0


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.1", "10.0.0.254", True),
        ("10.0.0.1", "10.0.1.1", False),
        ("::ffff:10.0.0.1", "10.0.0.9", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::9", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        (1001, 1002, False),
        ("no address", "no other", False),
    ],
)
def test_networks(one: str | int, other: str | int, same: bool) -> None:
    """An IPv4 network is a /24, one of IPv6 a /64; users and what is no address have one each."""
    assert (network_of(one) == network_of(other)) is same


@pytest.mark.long
def test_the_cost_of_a_connection_does_not_depend_on_how_many_peers_there_are() -> None:
    """CPU time of as many cuts with 8 times as many peers: far below 8 times as much, in the best of tries."""

    def cost(peers: int) -> float:
        limiter = ConnectionLimiter(peers)
        some(limiter, [f"10.{n % 200}.{n // 200}.1" for n in range(peers)])
        began = time.process_time()
        some(limiter, [f"10.{n % 200}.{n // 200}.2" for n in range(4000)])
        return time.process_time() - began

    cost(500)
    assert min(cost(4000) / cost(500) for _ in range(5)) < 4
