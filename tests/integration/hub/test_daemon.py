"""The hub as a process: it refuses to start on what it cannot use, finishes what is in flight, and loses nothing."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from tests.integration.small_disk import disk_of

from gpuwaste.core.errors import AuthError, RetryableWireError
from gpuwaste.ledger.hour import AllocationHour, HourBatch, encode_hour
from gpuwaste.net.batch import Batch, Envelope, encode_batch
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.munge_credentials import Munge, MungeIssuer
from gpuwaste.net.request_signing import sign_request
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.hub_rows import hour
from gpuwaste.testing.lone_hub import LoneHub, munged_path

pytestmark = [
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]
ENVELOPE = Envelope("gw", "gpu1", "boot", "0")
DUCKDB_LOG_B = 16 << 20  # of a log that DuckDB puts into the file after a commit
BATCH_LOG_B = 1 << 20  # more than a batch of 400 wide rows adds to the log


@pytest.fixture
def lone(tmp_path: Path, munge: str) -> Iterator[LoneHub]:
    hub = LoneHub(tmp_path, munge)
    yield hub
    hub.stop()


def one(job: int, seq: int = 1) -> HourBatch:
    return Batch((encode_hour(hour(job, seq=seq)),))


def stored(lone: LoneHub) -> float:
    """Return the rows in the hub's table of hours, as its metrics tell."""
    with socket.create_connection(("127.0.0.1", lone.port), 20) as sock:
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
        text = b"".join(iter(lambda: sock.recv(65536), b"")).decode()
    return next(
        float(x.split()[-1]) for x in text.splitlines() if x.startswith('gpuwaste_hub_store_rows{table="hours"')
    )


def request_of(lone: LoneHub, body: bytes) -> bytes:
    """Return the head of a batch as it goes over the wire, with a credential for the hub's munge."""
    headers = sign_request(MungeIssuer(Munge(lone.munge_socket)), "POST", "/v1/hours", body)
    head = f"POST /v1/hours HTTP/1.1\r\nHost: hub\r\nContent-Length: {len(body)}\r\n"
    return (head + "".join(f"{name}: {value}\r\n" for name, value in headers.items()) + "\r\n").encode()


def test_hours_are_acknowledged_through_the_whole_way(lone: LoneHub) -> None:
    """Client, munge, HTTP, store and signed acknowledgement fit together; a hub without Slurm says so in its health."""
    lone.start()
    assert lone.client().post_hours(ENVELOPE, one(7)).accepted == 1
    assert stored(lone) == 1
    health = HubClient(lone.url).get("/v1/health")
    assert (health["status"], health["accounting"]["ok"], health["cluster"]) == ("degraded", False, "gw")


def test_a_prediction_comes_the_whole_way(lone: LoneHub) -> None:
    """A munge credential bound to the body, the thread that reads the history, and the answer fit together."""
    lone.start()
    found: list[dict[str, object]] = []

    def asked() -> bool:
        with contextlib.suppress(RetryableWireError):
            found.extend(lone.client().predict([{"name": "train", "gpus": 2}]))
        return bool(found)

    wait_until(asked, 60, "the hub to have read the history")
    assert found[0]["request"] == found[0]["request"] | {"name": "train", "gpus": 2, "user": "root"}  # type: ignore[operator]
    assert HubClient(lone.url).get("/v1/health")["prediction"]["state"] == "ready"


def test_an_acknowledgement_of_another_user_is_not_believed(lone: LoneHub) -> None:
    """A hub that runs as another user than the agent expects is not believed, and its rows stay with the agent."""
    lone.start()
    client = HubClient(lone.url, MungeIssuer(Munge(lone.munge_socket), hub_uid=os.geteuid() + 1))
    with pytest.raises(AuthError, match="signed by uid"):
        client.post_hours(ENVELOPE, one(7))


@pytest.mark.long
def test_kill_9_at_any_moment_keeps_what_was_acknowledged(lone: LoneHub) -> None:
    """A hub killed while batches come in has each acknowledged row once when it is back, and takes repeats."""
    lone.start()
    for _ in range(3):
        client, acknowledged = lone.client(), 0
        for job in range(1, 9):
            acknowledged += client.post_hours(ENVELOPE, one(job)).accepted
        lone.kill()
        with contextlib.suppress(RetryableWireError):
            client.post_hours(ENVELOPE, one(9))
        lone.start()
        assert stored(lone) == 8
        assert lone.client().post_hours(ENVELOPE, one(1)).accepted == 1
        assert stored(lone) == 8


def test_sigterm_lets_a_request_finish(lone: LoneHub) -> None:
    """A batch half sent at SIGTERM is still taken and acknowledged; then the hub ends with 0."""
    lone.start()
    body = encode_batch(ENVELOPE, one(7))
    assert lone.process is not None
    with socket.create_connection(("127.0.0.1", lone.port), 20) as sock:
        sock.sendall(request_of(lone, body) + body[:100])
        wait_until(lambda: stored(lone) == 0, 60, "the hub to have read the head")
        lone.process.send_signal(signal.SIGTERM)
        wait_until(lambda: b"finishes" in lone.log.read_bytes(), 60, "the hub to stop listening")
        sock.sendall(body[100:])
        assert b" 200 " in sock.recv(65536)
    assert lone.process.wait(30) == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 2 MiB where the hub keeps its store."""
    with disk_of(tmp_path / "state", "2m") as disk:
        yield disk


def test_a_full_disk_refuses_hours_and_takes_them_when_there_is_room(small_disk: Path, lone: LoneHub) -> None:
    """Nothing is acknowledged that is not stored, the log says it once, reads go on, and no restart is needed."""
    lone.start()
    client = lone.client()
    batches = [Batch(tuple(encode_hour(wide(1000 * n + i)) for i in range(400))) for n in range(1, 16)]
    taken = 0
    with pytest.raises(RetryableWireError, match="cannot be written"):
        for batch in batches:
            taken += client.post_hours(ENVELOPE, batch).accepted
    with pytest.raises(RetryableWireError, match="cannot be written"):
        client.post_hours(ENVELOPE, batches[-1])
    assert stored(lone) == taken
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    for batch in batches:
        assert client.post_hours(ENVELOPE, batch).accepted == 400
    assert stored(lone) == 400 * len(batches)
    said = lone.log.read_text()
    assert said.count("rows-not-stored: cannot store hours") == 1
    assert "hours stored again after 2 refused batches" in said


@pytest.mark.long
def test_a_hub_whose_store_is_given_up_ends_and_has_all_rows_when_it_starts_again(
    tmp_path: Path, lone: LoneHub
) -> None:
    """A checkpoint that finds the disk full: exit code 1 and one line; the next start has each acknowledged row."""
    with disk_of(tmp_path / "state", "24m") as disk:
        lone.start()
        assert lone.process is not None
        client, log, taken = lone.client(), disk / "hub.duckdb.wal", 0
        batches = (Batch(tuple(encode_hour(wide(1000 * n + i)) for i in range(400))) for n in count(1))
        while not log.exists() or log.stat().st_size < DUCKDB_LOG_B - BATCH_LOG_B:
            taken += client.post_hours(ENVELOPE, next(batches)).accepted
        (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free - 2 * BATCH_LOG_B))
        with pytest.raises(RetryableWireError):
            while True:
                taken += client.post_hours(ENVELOPE, next(batches)).accepted
        assert lone.process.wait(60) == 1
        assert lone.log.read_text().count("store-given-up: ") == 1
        (disk / "ballast").unlink()
        lone.start()
        assert stored(lone) >= taken


def wide(job: int) -> AllocationHour:
    """Return a row with time at every percent."""
    return replace(hour(job), util_ms=dict.fromkeys(range(101), 17_000), idle_run_ms=0)


def test_a_second_hub_does_not_start(lone: LoneHub, tmp_path: Path) -> None:
    """A second hub on the same store ends with 1 and one line that names the first one's pid."""
    lone.start()
    assert lone.process is not None
    second = LoneHub(tmp_path / "second", lone.munge_socket, {"state_dir": str(lone.directory / "state")})
    second.directory.mkdir()
    second.start()
    assert second.process is not None
    assert second.process.wait(30) == 1
    said = second.log.read_text()
    assert str(lone.process.pid) in said
    assert ("Traceback" in said, len(said.strip().splitlines())) == (False, 1)


@pytest.mark.parametrize(
    ("hub", "words"),
    [
        ({"agent_user": "no-such-user"}, "no user 'no-such-user'"),
        ({"listen": "nowhere"}, "ADDRESS:PORT"),
        ({"listen": ""}, "both empty"),
        ({"tls_cert": "/nonexistent.pem", "tls_key": "/nonexistent.pem"}, "tls_cert"),
        ({"node_tokens_file": "/nonexistent"}, "/nonexistent"),
    ],
)
def test_a_bad_configuration_is_one_line(lone: LoneHub, hub: dict[str, str], words: str) -> None:
    """What cannot be used stops the start with one line that names the key, and exit code 2."""
    lone.hub = hub
    lone.start()
    assert lone.process is not None
    assert lone.process.wait(30) == 2
    said = lone.log.read_text()
    assert words in said.strip().splitlines()[-1]
    assert "Traceback" not in said


def test_a_corrupt_store_stops_the_start(lone: LoneHub) -> None:
    """A store that cannot be read is left as it is, and named in one line."""
    state = lone.directory / "state"
    state.mkdir()
    (state / "hub.duckdb").write_bytes(b"garbage" * 1000)
    lone.start()
    assert lone.process is not None
    assert lone.process.wait(30) == 1
    assert "hub.duckdb" in lone.log.read_text()
    assert (state / "hub.duckdb").read_bytes() == b"garbage" * 1000
