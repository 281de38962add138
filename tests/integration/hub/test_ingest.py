"""POST /v1/hours over real HTTP: what is taken, what is refused, and with which words."""

import contextlib
import gzip
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.integration.hub.rig import Rig, running_hub

from gpuwaste.hub.hub_ports import ServiceLimits
from gpuwaste.slurm.site.cluster_model import Node
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.hub_rows import AGENT_UID, HOUR, batch, hour
from gpuwaste.testing.patience import patient

FIXTURES = Path(__file__).parents[2] / "fixtures" / "protocol1"


def test_a_batch_is_stored_and_acknowledged(hub: Rig) -> None:
    """A good batch is answered with a signed acknowledgement of every row, which then is in the store."""
    answer = hub.post(batch(hour(7), hour(8)))
    assert (answer.status, answer.json) == (200, {"protocol": 1, "batch_id": "b1", "accepted": 2, "rejected": []})
    assert answer.headers["gpuwaste-ack"].startswith("ack:900:")
    assert [(h["job_id"], h["util_ms"]) for h in hub.hours()] == [(7, [1_800_000]), (8, [1_800_000])]


def test_a_batch_sent_twice_and_out_of_order_counts_once(hub: Rig) -> None:
    """The same rows again, and older ones after newer ones, are acknowledged and change nothing."""
    for seq in (2, 2, 1, 3, 2):
        assert hub.post(batch(hour(7, seq=seq, util_ms={50: seq}))).json["accepted"] == 1
    assert [(h["seq"], h["util_ms"]) for h in hub.hours()] == [(3, [3])]


def test_a_batch_recorded_from_protocol_1_is_taken(hub: Rig) -> None:
    """The literal bytes of a protocol 1 agent are stored field by field."""
    answer = hub.post((FIXTURES / "hours.ndjson").read_bytes())
    assert (answer.status, answer.json["accepted"]) == (200, 2)
    row = hub.hours()[0]
    assert (row["job_id"], row["seq"], row["final"], row["t0_ms"]) == (7, 3, False, HOUR * 1000 + 12_500)
    assert (row["pct"], row["util_ms"], row["idle_run_ms"]) == ([0, 97], [600_000, 1_190_000], 590_000)
    assert (row["unknown_reason"], row["unknown_ms"], row["sm_ratio_at_full"]) == (["gap"], [10_000], None)
    assert (row["energy_j"], row["map_source"], row["confidence"]) == (123456.5, "prolog", "confirmed")


def test_a_newer_agent_is_understood(hub: Rig) -> None:
    """One protocol ahead, fields that this hub does not know are left out and the rest is taken."""
    answer = hub.post((FIXTURES / "hours-of-a-newer-agent.ndjson").read_bytes())
    assert (answer.status, answer.json["accepted"], answer.json["rejected"]) == (200, 1, [])
    assert [h["job_id"] for h in hub.hours()] == [9]


def test_an_agent_too_new_is_told_the_range(hub: Rig) -> None:
    """Two protocols ahead is answered with 426 and the range that this hub speaks."""
    answer = hub.post((FIXTURES / "hours-of-an-agent-too-new.ndjson").read_bytes())
    assert (answer.status, answer.json["protocol"]) == (426, [1, 2])
    assert "update the hub" in answer.json["error"]
    assert hub.hours() == []


def test_bad_rows_are_named_by_line_and_good_ones_are_taken(hub: Rig) -> None:
    """A row of another node, one that cannot be, one cut off and one nested too deep are rejected with their lines."""
    deep = b'{"a":' * 50_000 + b"1" + b"}" * 50_000
    whole = batch(hour(7), hour(8, node="gpu2"), hour(9, util_ms={50: 1_900_000}), cluster="gw")
    answer = hub.post(whole + deep + b"\n" + b'{"schema":1,"clus')
    rejected = {entry["line"]: entry["reason"] for entry in answer.json["rejected"]}
    assert (answer.status, answer.json["accepted"], sorted(rejected)) == (200, 1, [3, 4, 5, 6])
    assert rejected[3] == "node gpu2 is not the batch's gpu1"
    assert "add up" in rejected[4]
    assert "invalid JSON" in rejected[5]
    assert [h["job_id"] for h in hub.hours()] == [7]


def test_hours_of_the_future_and_of_the_time_before_slurm_are_rejected(hub: Rig) -> None:
    """Nobody fills the reports of next year, nor those of 1970; a clock that is ahead by some hours is no forger."""
    now = hub.clock.utc_s() // 3600 * 3600
    times = {7: now + 20 * 3600, 8: now + 48 * 3600, 9: 2**40 // 3600 * 3600, 10: 3600}
    rows = [hour(job, hour_utc=at, t0_ms=at * 1000, t1_ms=at * 1000 + 1_800_000) for job, at in times.items()]
    answer = hub.post(batch(*rows))
    assert [entry["line"] for entry in answer.json["rejected"]] == [3, 4, 5]
    assert all("set the node's clock" in entry["reason"] for entry in answer.json["rejected"])
    assert [h["job_id"] for h in hub.hours()] == [7]


def test_numbers_beyond_every_float_reject_their_row_alone(hub: Rig) -> None:
    """JSON has whole numbers of any length: such a row is named, and is no defect that would stop the others."""
    good = batch(hour(7), hour(8))
    bad = good.replace(b'"energy_j":null', b'"energy_j":1' + b"0" * 400, 1)
    assert bad != good
    answer = hub.post(bad)
    assert (answer.status, [entry["line"] for entry in answer.json["rejected"]]) == (200, [2])
    assert [h["job_id"] for h in hub.hours()] == [8]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"\x00\xff\xfe" * 1000, "invalid JSON"),
        (b"", "invalid JSON"),
        (b'["protocol",1]\n', "not a JSON object"),
        (b'{"protocol":"1","batch_id":"b"}\n', "protocol is not a whole number"),
        (batch(hour(7), cluster="other"), "cluster 'other' is not served here"),
        (b"[" * 100_000, "invalid JSON"),
    ],
)
def test_what_is_no_batch_is_refused_whole(hub: Rig, body: bytes, words: str) -> None:
    """Binary, empty, foreign and deep-nested bodies get 400 with the reason, and nothing is stored."""
    answer = hub.post(body)
    assert answer.status == 400
    assert words in answer.json["error"]
    assert hub.hours() == []


def test_another_node_cannot_be_played(hub: Rig) -> None:
    """A credential made on gpu1 does not send gpu2's hours, nor those of a node that Slurm does not know."""
    answer = hub.post(batch(hour(7, node="gpu2"), node="gpu2"), origin="10.0.0.1")
    assert answer.status == 403
    assert "10.0.0.1" in answer.json["error"]
    assert hub.post(batch(hour(7, node="gpu9"), node="gpu9")).status == 403
    assert hub.hours() == []


def test_another_user_cannot_send_hours(hub: Rig) -> None:
    """Only the agents' user may send hours, whoever else has a good credential; root's is no exception."""
    for uid in (1001, 0):
        answer = hub.post(batch(hour(7)), uid=uid)
        assert (answer.status, answer.json["error"]) == (403, f"uid {uid} may not send hour rows of gpu1")
    assert hub.hours() == []


def test_a_credential_is_good_for_one_request_only(hub: Rig) -> None:
    """Replayed, moved to another path or body, made up, or missing, a credential gets 401 and nothing is stored."""
    body = batch(hour(7))
    good = hub.credential(AGENT_UID, "POST", "/v1/hours", body)
    other_path = hub.credential(AGENT_UID, "POST", "/v1/hours?x=1", body)
    for authorization, words in (
        (good, "another request"),
        (other_path, "another request"),
        ("Munge junk", "Invalid credential"),
        ("Basic eDp5", "Munge is required"),
        ("", "Munge is required"),
        ("Munge " + "x" * 9000, "characters"),
    ):
        answer = hub.send("POST", "/v1/hours", batch(hour(8)), {"Authorization": authorization})
        assert (answer.status, answer.json["retry"]) == (401, False)
        assert words in answer.json["error"]
    fresh = hub.credential(AGENT_UID, "POST", "/v1/hours", body)
    assert hub.send("POST", "/v1/hours", body, {"Authorization": fresh}).status == 200
    again = hub.send("POST", "/v1/hours", body, {"Authorization": fresh})
    assert (again.status, "Replayed" in again.json["error"]) == (401, True)
    assert [h["job_id"] for h in hub.hours()] == [7]


def test_a_clock_error_may_be_tried_again(hub: Rig) -> None:
    """An expired credential is answered with 401 and retry: a fresh one may succeed."""
    answer = hub.send("POST", "/v1/hours", batch(hour(7)), {"Authorization": "Munge expired"})
    assert (answer.status, answer.json["retry"]) == (401, True)


def test_a_body_too_large_is_refused_before_it_is_read(hub: Rig) -> None:
    """By its announced length, or as soon as a body without one grows past the limit, the answer is 413."""
    with raw(hub, "Content-Length: 99999999\r\n") as sock:
        assert b" 413 " in answered(sock)
    with raw(hub, "Transfer-Encoding: chunked\r\n") as sock:
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(40):
                sock.sendall(chunk)
        with contextlib.suppress(ConnectionResetError):
            assert b" 413 " in answered(sock)
    assert hub.post(batch(hour(7))).status == 200


def test_a_compressed_body_is_refused(hub: Rig) -> None:
    """Gzip is not undone: no small body becomes a large one here."""
    body = gzip.compress(batch(hour(7)))
    headers = {"Authorization": hub.credential(AGENT_UID, "POST", "/v1/hours", body), "Content-Encoding": "gzip"}
    answer = hub.send("POST", "/v1/hours", body, headers)
    assert (answer.status, "uncompressed" in answer.json["error"]) == (415, True)


def test_a_body_that_drips_in_is_given_up(tmp_path: Path) -> None:
    """A client that announces a body and does not send it in time gets 408, and holds nothing up."""
    with (
        running_hub(tmp_path, limits=ServiceLimits(body_deadline_s=0.2)) as hub,
        raw(hub, "Content-Length: 1000\r\n") as sock,
    ):
        sock.sendall(b"{")
        assert b" 408 " in answered(sock)
        assert hub.post(batch(hour(7))).status == 200


def test_half_a_body_stores_nothing(hub: Rig) -> None:
    """A connection that ends within the body leaves the store as it was, and the hub at work."""
    body = batch(hour(7))
    authorization = hub.credential(AGENT_UID, "POST", "/v1/hours", body)
    with raw(hub, f"Authorization: {authorization}\r\nContent-Length: {len(body)}\r\n") as sock:
        sock.sendall(body[: len(body) // 2])
    assert hub.post(batch(hour(8))).status == 200
    assert [h["job_id"] for h in hub.hours()] == [8]


def test_what_is_no_http_ends_the_connection(hub: Rig) -> None:
    """Bytes that are no request are answered with 400 and the connection is closed."""
    with socket.create_connection(("127.0.0.1", hub.port), 20) as sock:
        sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
        assert b" 400 " in answered(sock)


def test_without_slurm_the_agent_is_asked_to_come_again(tmp_path: Path) -> None:
    """While no node's address is known the answer is 503, and the rows are taken once Slurm has answered."""
    with running_hub(tmp_path, FakeSlurm(failure="Unable to contact slurm controller")) as hub:
        answer = hub.post(batch(hour(7)))
        assert (answer.status, hub.hours()) == (503, [])


def test_a_known_node_is_served_while_slurm_is_down(hub: Rig) -> None:
    """Addresses that were known stay good when slurmctld does not answer any more."""
    assert hub.post(batch(hour(7))).status == 200
    hub.slurm.failure = "Unable to contact slurm controller"
    assert hub.post(batch(hour(8))).status == 200


def test_a_node_that_moved_is_asked_for_anew(tmp_path: Path) -> None:
    """A node address given as a name is resolved before it is compared."""
    slurm = FakeSlurm(node_list=[Node("gpu1", address="localhost")])
    with running_hub(tmp_path, slurm, agent_uid=os.getuid()) as hub:
        assert hub.post(batch(hour(7)), uid=os.getuid(), origin="127.0.0.1").status == 200
        assert hub.post(batch(hour(7)), uid=os.getuid(), origin="10.0.0.1").status == 403


_OWN: Final = "198.51.100.7"
"""Of RFC 5737's addresses for documentation."""


def own_address() -> str:
    """Return an address of this host that other hosts can use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("198.51.100.1", 9))  # sends nothing
        except OSError:  # a network of the tests' own, with nothing but the loopback device
            subprocess.run(["ip", "address", "replace", f"{_OWN}/32", "dev", "lo"], check=True, timeout=patient(30))
            return _OWN
        return str(sock.getsockname()[0])


def test_a_loopback_origin_is_the_hub_s_own_host(tmp_path: Path) -> None:
    """The agent beside the hub is believed although munged calls itself 127.0.1.1; for another node it is not."""
    slurm = FakeSlurm(node_list=[Node("gpu1", address=own_address()), Node("gpu2", address="10.0.0.2")])
    with running_hub(tmp_path, slurm, agent_uid=os.getuid()) as hub:
        assert hub.post(batch(hour(7)), uid=os.getuid(), origin="127.0.1.1").status == 200
        answer = hub.post(batch(hour(7, node="gpu2"), node="gpu2"), uid=os.getuid(), origin="127.0.1.1")
        assert answer.status == 403
        assert "the credential was created on 127.0.1.1, but NodeAddr of gpu2 is 10.0.0.2" in answer.json["error"]
        assert "with --origin=10.0.0.2 (OPTIONS in /etc/default/munge)" in answer.json["error"]
        assert {row["node"] for row in hub.hours()} == {"gpu1"}


@pytest.mark.parametrize("named", ["own", "localhost"])
def test_a_loopback_origin_that_another_user_passes_on_is_refused(tmp_path: Path, named: str) -> None:
    """Each host of Debian's is 127.0.1.1 to itself: what comes by a proxy or a tunnel on the hub's host is not its."""
    address, origin = (own_address(), "127.0.1.1") if named == "own" else ("localhost", "127.0.0.1")
    slurm = FakeSlurm(node_list=[Node("gpu1", address=address)])
    with running_hub(tmp_path, slurm) as hub:  # its agents' user is not the one who connects
        answer = hub.post(batch(hour(7)), origin=origin)
        assert (answer.status, hub.hours()) == (403, [])
        assert "uses a loopback address from /etc/hosts" in answer.json["error"]


def test_a_store_that_cannot_be_written_is_no_loss(hub: Rig) -> None:
    """Where the commit fails the answer is 503: the agent keeps its rows."""
    hub.store.close()
    answer = hub.post(batch(hour(7)))
    assert (answer.status, "store" in answer.json["error"]) == (503, True)


@contextlib.contextmanager
def raw(hub: Rig, headers: str) -> Iterator[socket.socket]:
    """Open a connection and send the head of a POST of hours."""
    with socket.create_connection(("127.0.0.1", hub.port), 20) as sock:
        sock.sendall(f"POST /v1/hours HTTP/1.1\r\nHost: hub\r\n{headers}\r\n".encode())
        yield sock


def answered(sock: socket.socket) -> bytes:
    """Read until the hub closes the connection."""
    parts = []
    while part := sock.recv(65536):
        parts.append(part)
    return b"".join(parts)
