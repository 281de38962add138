"""The submit plugins' exchange with the advisor: deadline, peer, breaker, kill switch, staleness, changed settings."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.passable import let_others_through
from tests.plugins.client_driver import LONG_AGO, SHORT_US, Asked, Client, write_config

from gpuwaste.advice.submit_frames import HEADER, MAX_REPLY, encode_frame, encode_reply
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.scripted_advisor import ScriptedAdvisor

VERDICT = "0123456789abcdef"
NEVER_MS = 86_400_000
PASS = Asked("go", taken=False, action="pass", code=0, id="", as_of=0, time_min=0, message="")
SKIPPED = Asked("skipped", taken=False, action="pass", code=0, id="", as_of=0, time_min=0, message="")
pytestmark = [pytest.mark.core, pytest.mark.sockets]  # other users have to get to them, through no folder of pytest's
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to listen as another user")


def reply(action: Any = "warn", lines: tuple[str, ...] = ("look",), **options: Any) -> bytes:
    """Return a fresh advisor's reply."""
    return encode_reply(VERDICT, action, lines, **{"as_of": int(time.time()), **options})


@pytest.fixture
def client(harness: Path) -> Iterator[Client]:
    """Return the client library under the address sanitizer."""
    with Client(harness) as program:
        yield program


def ask_of(client: Client, directory: Path, answer: bytes, **plugin: Any) -> Asked:
    """Ask once of an advisor that answers so."""
    with ScriptedAdvisor(directory / "advisor.sock", lambda _: answer):
        client.say("open", write_config(directory, breaker_misses=1000, **plugin))
        return client.ask()


def counted(client: Client, **expected: int) -> bool:
    """Tell whether the counters are these, and all others zero but `asked`."""
    totals = client.totals()
    del totals["asked"]
    return {key: value for key, value in totals.items() if value} == expected


def test_answer_is_taken(client: Client, tmp_path: Path) -> None:
    """A whole reply within the deadline arrives member for member."""
    asked = ask_of(client, tmp_path, reply("reject", ("why", "how"), code=2051, time_min=12))
    assert (asked.taken, asked.action, asked.code, asked.id) == (True, "reject", 2051, VERDICT)
    assert (asked.time_min, asked.message) == (12, "why\nhow")
    assert counted(client, answered=1)


@pytest.mark.parametrize(
    ("name", "answer", "counter"),
    [
        ("nothing", b"", "missed"),
        ("half a header", reply()[:4], "missed"),
        ("header alone", reply()[:6], "missed"),
        ("half a reply", reply()[:-9], "missed"),
        ("another version", encode_frame({}, version=2), "refused"),
        ("no frame", b"HTTP/1.1 200 OK\r\n\r\n", "refused"),
        ("empty frame", HEADER.pack(0, 1), "refused"),
        ("too long", HEADER.pack(MAX_REPLY + 1, 1) + b"{" * MAX_REPLY, "refused"),
        ("a megabyte", HEADER.pack(1 << 20, 1) + b" " * (1 << 20), "refused"),
        ("a lying megabyte", HEADER.pack(20, 1) + b" " * (1 << 20), "refused"),
        ("one byte more", reply() + b"x", "refused"),
        ("two replies", reply() * 2, "refused"),
        ("no json", HEADER.pack(4, 1) + b"\xff\xfe\x00\x01", "refused"),
        ("no reply", encode_frame({"v": 1}), "refused"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # an answer has the time in it
)
def test_broken_answer_is_a_pass(client: Client, tmp_path: Path, name: str, answer: bytes, counter: str) -> None:
    """Whatever comes instead of a reply, the job passes, and the counter says which kind it was."""
    assert ask_of(client, tmp_path, answer) == PASS, name
    assert counted(client, **{counter: 1})


def test_refused_reply_is_named_in_the_log_once(harness: Path, tmp_path: Path) -> None:
    """The log says what is wrong with the advisor, but not for each job."""
    with Client(harness) as client:
        ask_of(client, tmp_path, reply())
        with ScriptedAdvisor(tmp_path / "advisor.sock", lambda _: encode_frame({"v": 1})):
            for _ in range(5):
                client.ask()
    why = "rejected: the reply is not valid in this version; job accepted without advice"
    said = [line for line in client.log if "rejected" in line]
    assert said == [f"gpuwaste: advisor at {tmp_path}/advisor.sock: {why}"]


@contextmanager
def raw_server(path: Path, serve: Callable[[socket.socket], None], backlog: int = 16) -> Iterator[None]:
    """Hand each connection to `serve`, in a thread of its own, until the end."""
    stop = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen(backlog)
        listener.settimeout(0.05)

        def run() -> None:
            while not stop.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                with connection:
                    serve(connection)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(30)
            path.unlink()


def test_hung_advisor_costs_one_deadline(client: Client, tmp_path: Path) -> None:
    """An advisor that accepts and says nothing is given up at the deadline."""
    held: list[socket.socket] = []
    with raw_server(tmp_path / "advisor.sock", lambda connection: held.append(connection.dup())):
        client.say("open", write_config(tmp_path, deadline_us=SHORT_US))
        assert client.ask() == PASS
    assert counted(client, missed=1)
    for connection in held:
        connection.close()


def test_slow_drip_does_not_stretch_the_deadline(client: Client, tmp_path: Path) -> None:
    """Byte for byte in time, a whole reply too late: the deadline covers all of the exchange, not each read."""

    def drip(connection: socket.socket) -> None:
        for byte in reply():
            try:
                connection.send(bytes([byte]))
            except OSError:
                return
            time.sleep(SHORT_US / 4e6)

    with raw_server(tmp_path / "advisor.sock", drip):
        client.say("open", write_config(tmp_path, deadline_us=SHORT_US))
        assert client.ask() == PASS
    assert counted(client, missed=1)


def test_full_queue_is_not_waited_for(client: Client, tmp_path: Path) -> None:
    """A stopped advisor whose queue is full is a miss at once, whatever the deadline."""
    path = tmp_path / "advisor.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, socket.socket(socket.AF_UNIX) as waiting:
        listener.bind(str(path))
        listener.listen(0)
        waiting.connect(str(path))
        client.say("open", write_config(tmp_path, deadline_us=10_000_000))
        assert client.ask() == PASS
        assert counted(client, missed=1)


def test_absent_advisor_is_a_miss(client: Client, tmp_path: Path) -> None:
    """Without a socket, with a file in its place, and with a socket that nobody serves, the job passes."""
    path = tmp_path / "advisor.sock"
    client.say("open", write_config(tmp_path))
    assert client.ask() == PASS
    path.write_text("a file")
    assert client.ask() == PASS
    path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
    assert client.ask() == PASS
    assert counted(client, missed=3, opened=1)


def test_answer_without_reading_is_taken(client: Client, tmp_path: Path) -> None:
    """An advisor that is behind may answer and close before it has read the request, even one of 64 KiB."""
    (tmp_path / "script").write_bytes(b"x" * 65536)

    def shed(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.sendall(reply("pass", ()))

    with raw_server(tmp_path / "advisor.sock", shed):
        client.say("open", write_config(tmp_path, script_bytes=65536, breaker_misses=1000))
        client.say("script", tmp_path / "script")
        assert [client.ask().taken for _ in range(20)] == [True] * 20


@contextmanager
def foreign_server(path: Path, uid: int) -> Iterator[None]:
    """Serve good replies from a process of another user."""
    argv = [sys.executable, "-m", "tests.plugins.foreign_advisor", str(uid), str(path)]
    server = subprocess.Popen(argv)

    def serves() -> bool:
        assert server.poll() is None, f"the foreign server ended with {server.returncode}"
        return path.exists() and path.stat().st_mode & 0o777 == 0o666

    try:
        wait_until(serves, 30, "the foreign socket")
        yield
    finally:
        server.kill()
        server.wait()
        path.unlink(missing_ok=True)


@as_root
@pytest.mark.parametrize(("uid", "taken"), [(65534, False), (33, True)])
def test_only_the_advisors_user_is_believed(harness: Path, tmp_path: Path, uid: int, *, taken: bool) -> None:
    """A socket of another user is refused, however good its replies; one of advisor_user is taken."""
    tmp_path.chmod(0o777)
    let_others_through(tmp_path)
    with Client(harness) as client:
        client.say("open", write_config(tmp_path, advisor_user="www-data"))
        with foreign_server(tmp_path / "advisor.sock", uid):
            assert client.ask().taken == taken
        assert counted(client, **({"answered": 1} if taken else {"refused": 1}))
    assert any("neither advisor_user nor root" in line for line in client.log) != taken


@as_root
def test_unknown_advisor_user(harness: Path, tmp_path: Path, advisor: ScriptedAdvisor) -> None:
    """A user that does not exist is named in the log; root's advisor is believed all the same."""
    with Client(harness) as client:
        client.say("open", write_config(tmp_path, advisor_user="no-such-user"))
        assert client.ask().taken
    assert any("no user no-such-user (advisor_user)" in line for line in client.log)
    assert advisor.requests


@as_root
@pytest.mark.parametrize("threads", [False, True])
def test_a_hung_name_service_holds_no_submission(harness: Path, tmp_path: Path, *, threads: bool) -> None:
    """Opening and asking go on while advisor_user is looked up; once the answer is there that user is believed."""
    pipe = tmp_path / "hung"
    os.mkfifo(pipe)
    tmp_path.chmod(0o777)
    let_others_through(tmp_path)
    with Client(harness, threads=threads, GW_HUNG_USER="www-data", GW_HUNG=str(pipe)) as client:
        client.say("open", write_config(tmp_path, advisor_user="www-data", breaker_misses=1_000_000))
        with foreign_server(tmp_path / "advisor.sock", 33):
            for _ in range(20):
                assert not client.ask().taken
            write = os.open(pipe, os.O_WRONLY)
            os.write(write, b"x")
            os.close(write)
            wait_until(lambda: client.ask().taken, 60, "the user to be known")
    assert any("takes long" in line for line in client.log)


@as_root
def test_a_hung_name_service_outlives_no_program(harness: Path, tmp_path: Path) -> None:
    """A program that ends while the lookup hangs ends well: nothing is used after it was freed."""
    os.mkfifo(tmp_path / "hung")
    with Client(harness, GW_HUNG_USER="slow", GW_HUNG=str(tmp_path / "hung")) as client:
        client.say("open", write_config(tmp_path, advisor_user="slow"))
        client.say("open", write_config(tmp_path, advisor_user="root"))
    assert sum("takes long" in line for line in client.log) == 1


def test_kill_switch(client: Client, tmp_path: Path, advisor: ScriptedAdvisor) -> None:
    """While the file is there nothing is asked; once it is gone everything is."""
    client.say("open", write_config(tmp_path))
    (tmp_path / "disable").touch()
    assert client.ask().start == "killed"
    assert not advisor.requests
    (tmp_path / "disable").unlink()
    assert client.ask().taken
    assert counted(client, killed=1, answered=1)


@pytest.mark.parametrize(("age_s", "action"), [(0, "reject"), (50, "reject"), (200, "pass"), (-86400, "reject")])
def test_stale_reply_is_a_pass(client: Client, tmp_path: Path, age_s: int, action: str) -> None:
    """On a history older than stale_s nobody is warned or refused; the verdict's id stays, for the audit."""
    answer = reply("reject", ("no",), as_of=int(time.time()) - age_s, time_min=5)
    asked = ask_of(client, tmp_path, answer, stale_s=100)
    assert (asked.action, asked.id) == (action, VERDICT)
    assert bool(asked.message) == bool(asked.time_min) == (action == "reject")
    assert client.totals()["stale"] == (action == "pass")


def test_reply_without_a_time_is_stale(client: Client, tmp_path: Path) -> None:
    """An advisor that does not say how old its history is, is not acted on."""
    assert ask_of(client, tmp_path, encode_reply(VERDICT, "reject", ["no"])).action == "pass"
    assert client.totals()["stale"] == 1
    assert ask_of(client, tmp_path, reply("reject", as_of=LONG_AGO)).action == "pass"


def test_breaker_opens_after_misses_in_a_row(harness: Path, tmp_path: Path) -> None:
    """After three misses in a row nobody is asked; a success in between starts the count anew."""
    with Client(harness) as client:
        client.say("open", write_config(tmp_path, breaker_first_ms=NEVER_MS, breaker_max_ms=NEVER_MS))
        assert [client.ask() for _ in range(2)] == [PASS] * 2
        with ScriptedAdvisor(tmp_path / "advisor.sock", lambda _: reply()):
            assert client.ask().taken
        assert [client.ask() for _ in range(5)] == [PASS] * 3 + [SKIPPED] * 2
        assert counted(client, answered=1, missed=5, opened=1, skipped=2)
    why = f"no listener; jobs accepted without advice, retry in {NEVER_MS} ms"
    said = [line for line in client.log if "retry in" in line]
    assert said == [f"gpuwaste: advisor at {tmp_path}/advisor.sock: {why}"]


def test_garbage_opens_the_breaker_too(client: Client, tmp_path: Path) -> None:
    """An advisor whose replies are refused is as good as none."""
    with ScriptedAdvisor(tmp_path / "advisor.sock", lambda _: b"garbage"):
        client.say("open", write_config(tmp_path, breaker_first_ms=NEVER_MS, breaker_max_ms=NEVER_MS))
        assert [client.ask().start for _ in range(4)] == ["go"] * 3 + ["skipped"]
    assert counted(client, refused=3, opened=1, skipped=1)


def test_breaker_closes_at_a_good_probe(harness: Path, tmp_path: Path) -> None:
    """Once the advisor answers a probe, every job is asked about again, and the log says so."""
    with Client(harness) as client:
        client.say("open", write_config(tmp_path, breaker_first_ms=1, breaker_max_ms=20))
        for _ in range(10):
            client.ask()
        with ScriptedAdvisor(tmp_path / "advisor.sock", lambda _: reply()):
            wait_until(lambda: client.ask().taken, 60, "a probe to be answered")
            assert all(client.ask().taken for _ in range(10))
        assert client.totals()["opened"] == 1
    assert any("answers again" in line for line in client.log)


def test_a_flapping_advisor_is_named_once(harness: Path, tmp_path: Path) -> None:
    """A breaker that opens and closes many times within a minute makes one pair of lines; the totals tell how often."""
    with Client(harness) as client:
        client.say("open", write_config(tmp_path, breaker_first_ms=1, breaker_max_ms=1))
        for _ in range(5):
            for _ in range(3):
                client.ask()
            with ScriptedAdvisor(tmp_path / "advisor.sock", lambda _: reply()):
                wait_until(lambda: client.ask().taken, 60, "a probe to be answered")
        assert client.totals()["opened"] >= 5
    assert sum("retry in" in line for line in client.log) == 1
    assert sum("answers again" in line for line in client.log) == 1


def test_one_probe_in_each_period(harness: Path, tmp_path: Path) -> None:
    """Sixteen threads that ask an advisor without a socket probe it a few times, not once each."""
    with Client(harness, threads=True) as client:
        client.say("open", write_config(tmp_path, breaker_first_ms=NEVER_MS, breaker_max_ms=NEVER_MS))
        totals = dict(pair.split("=") for pair in client.say("threads", 16, 1000).split())
        # Those that were under way when it opened are misses too, at most one a thread.
        assert 3 <= int(totals["missed"]) <= 3 + 15
        assert int(totals["opened"]) == 1
        assert int(totals["missed"]) + int(totals["skipped"]) == 16_000


def test_sixteen_threads_through_the_breaker(harness: Path, tmp_path: Path) -> None:
    """Under the thread sanitizer: misses, probes, answers and a changing file all at once, and no question lost."""
    path = tmp_path / "advisor.sock"
    count = 0

    def answer(_: object) -> bytes:
        nonlocal count
        count += 1
        return reply() if count % 7 else b"garbage"

    stop = threading.Event()

    def rewrite() -> None:
        while not stop.wait(0.02):
            write_config(tmp_path, breaker_misses=2, breaker_first_ms=1, breaker_max_ms=4)

    config = write_config(tmp_path, breaker_misses=2, breaker_first_ms=1, breaker_max_ms=4)
    with Client(harness, threads=True) as client, ScriptedAdvisor(path, answer):
        writer = threading.Thread(target=rewrite)
        writer.start()
        client.say("open", config)
        totals = {key: int(value) for key, value in (p.split("=") for p in client.say("threads", 16, 300).split())}
        stop.set()
        writer.join()
    assert totals["asked"] + totals["skipped"] == 16 * 300
    assert totals["asked"] == totals["answered"] + totals["missed"] + totals["refused"]
    assert totals["answered"] > 0
    assert totals["refused"] > 0


def test_changed_file_is_followed(client: Client, tmp_path: Path, advisor: ScriptedAdvisor) -> None:
    """A site changes a key in gpuwaste.toml or a drop-in, and slurmctld is not restarted for it."""

    def seen() -> int:
        return int(advisor.requests[-1]["deadline_us"])

    client.say("open", write_config(tmp_path, deadline_us=5_000_000))
    client.ask()
    write_config(tmp_path, deadline_us=5_000_001)
    wait_until(lambda: client.ask().taken and seen() == 5_000_001, 30, "the new deadline")
    (tmp_path / "gpuwaste.toml").unlink()
    # The defaults point to the real site's socket, where nobody is.
    wait_until(lambda: not client.ask().taken, 30, "the defaults")
    write_config(tmp_path, breaker_first_ms=1, breaker_max_ms=1)
    wait_until(lambda: client.ask().taken, 60, "the old socket")
    drop_in = tmp_path / "gpuwaste.toml.d" / "site.toml"
    drop_in.parent.mkdir()
    drop_in.write_text("[plugin]\ndeadline_us = 5_000_002\n")
    wait_until(lambda: client.ask().taken and seen() == 5_000_002, 30, "the drop-in's deadline")
    drop_in.write_text("[plugin]\ndeadline_us = 5_000_003\n")
    wait_until(lambda: client.ask().taken and seen() == 5_000_003, 30, "the drop-in's next deadline")
    drop_in.unlink()
    wait_until(lambda: client.ask().taken and seen() < 5_000_002, 30, "the file's deadline")
