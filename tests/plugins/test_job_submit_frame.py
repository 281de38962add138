"""The frame that the submit plugins write, read by the advisor's own reader."""

from pathlib import Path

import pytest
from tests.plugins.client_driver import PATIENT_US, Client, to_hex, write_config

from gpuwaste.advice.submit_frames import HEADER, MAX_REQUEST
from gpuwaste.testing.scripted_advisor import ScriptedAdvisor, text_of

pytestmark = pytest.mark.core

LIMIT = 1024
SCRIPT_BYTES = 32768
FNV_OFFSET, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
NAMES = ("name", "account", "partition", "qos", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task")
MORE_NAMES = ("cpus_per_tres", "mem_per_tres", "features", "comment", "admin_comment", "reservation", "dependency")


def fnv(data: bytes) -> str:
    """Return the hash of the format, computed here on its own."""
    value = FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * FNV_PRIME) % 2**64
    return f"{value:016x}"


def test_head_of_a_request(harness: Path, tmp_path: Path, advisor: ScriptedAdvisor) -> None:
    """A request says what is asked by whom, through which plugin, how long it waits, and the totals so far."""
    with Client(harness) as client:
        client.say("open", write_config(tmp_path))
        client.say("number", "min_nodes", 2)
        client.say("true", "test_only")
        assert client.ask(uid=1234).taken
        client.ask()
    first, second = advisor.requests
    assert {key: first[key] for key in ("op", "via", "slurm", "deadline_us", "uid")} == {
        "op": "submit",
        "via": "c",
        "slurm": "22.05.8",
        "deadline_us": PATIENT_US,
        "uid": 1234,
    }
    assert first["job"] == {"min_nodes": 2, "test_only": True}
    assert (first["counters"]["asked"], first["counters"]["answered"]) == (1, 0)
    assert (second["counters"]["asked"], second["counters"]["answered"]) == (2, 1)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (b"plain", True),
        ("grüße 日本 🙂".encode(), True),
        (b'quote " backslash \\ slash / tab \t line\n\r', True),
        (b"bell \x07", True),
        (b"\x7f\xc2\x85", True),
        (bytes(range(1, 128)), False),
        (b"\x01" * 300, False),
        (b"\xff\xfebinary", False),
        (b"\xc0\xaf overlong", False),
        (b"\xed\xa0\x80 surrogate", False),
        (b"\xf4\x90\x80\x80 beyond", False),
        (b"cut \xe2\x82", False),
    ],
)
def test_every_text_arrives_byte_for_byte(
    harness: Path, tmp_path: Path, advisor: ScriptedAdvisor, text: bytes, plain: bool
) -> None:
    """Whatever bytes a user writes, the advisor's reader gives the same bytes, from the shorter form of the two."""
    with Client(harness) as client:
        client.say("open", write_config(tmp_path))
        client.say("text", "name", to_hex(text))
        client.ask()
    assert text_of(advisor.requests[0]["job"]["name"]) == text
    assert isinstance(advisor.requests[0]["job"]["name"], str) == plain


@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT, LIMIT + 1, 100_000])
def test_text_at_its_limit(harness: Path, tmp_path: Path, advisor: ScriptedAdvisor, length: int) -> None:
    """A text is cut at 1024 bytes and never within a character."""
    with Client(harness) as client:
        client.say("open", write_config(tmp_path))
        client.say("text", "name", to_hex("x" * length))
        client.say("text", "account", to_hex("x" + "€" * (length // 3)))
        client.ask()
    job = advisor.requests[0]["job"]
    assert len(job["name"]) == min(length, LIMIT)
    whole = ("x" + "€" * (length // 3)).encode()
    assert whole.startswith(text_of(job["account"]))
    assert isinstance(job["account"], str)
    assert len(text_of(job["account"])) in (len(whole), LIMIT, LIMIT - 1, LIMIT - 2)


@pytest.mark.parametrize(
    ("size", "sent"), [(0, 0), (1, 1), (SCRIPT_BYTES, SCRIPT_BYTES), (SCRIPT_BYTES + 1, SCRIPT_BYTES)]
)
def test_script(harness: Path, tmp_path: Path, advisor: ScriptedAdvisor, size: int, sent: int) -> None:
    """A script travels up to script_bytes, with its whole length and the hash of all of it."""
    script = (b"#!/bin/sh\nsrun ./train\n" * (size // 20 + 1))[:size]
    (tmp_path / "script").write_bytes(script)
    with Client(harness) as client:
        client.say("open", write_config(tmp_path))
        client.say("script", tmp_path / "script")
        client.ask()
        assert client.totals()["oversize"] == 0
    job = advisor.requests[0]["job"]
    assert text_of(job.get("script", "")) == script[:sent]
    assert (job["script_bytes"], job["script_hash"]) == (size, fnv(script))


def test_script_of_five_megabytes(harness: Path, tmp_path: Path, advisor: ScriptedAdvisor) -> None:
    """A huge script is hashed whole and sent in part; one over 8 MiB is not hashed."""
    script = b"echo %d\n" % 7 * 650_000
    config = write_config(tmp_path)
    with Client(harness) as client:
        client.say("open", config)
        for data in (script, script * 2):
            (tmp_path / "script").write_bytes(data)
            client.say("clear")
            client.say("script", tmp_path / "script")
            client.ask()
    five, ten = (request["job"] for request in advisor.requests)
    assert (five["script_bytes"], ten["script_bytes"]) == (len(script), 2 * len(script))
    assert five["script_hash"] == fnv(script)
    assert "script_hash" not in ten
    assert len(text_of(five["script"])) == len(text_of(ten["script"])) == SCRIPT_BYTES


@pytest.mark.parametrize("byte", [b"\x01", b"\n", b"\xff", b"x", b'"'])
def test_frame_never_exceeds_its_limit(harness: Path, tmp_path: Path, advisor: ScriptedAdvisor, byte: bytes) -> None:
    """With every text at its limit and a script for the rest, the texts are whole and the frame is within 64 KiB."""
    (tmp_path / "script").write_bytes(byte * 65536)
    with Client(harness) as client:
        client.say("open", write_config(tmp_path, script_bytes=65536))
        for name in (*NAMES, *MORE_NAMES):
            client.say("text", name, to_hex(byte * LIMIT))
        client.say("script", tmp_path / "script")
        assert client.ask().taken
        assert client.totals()["oversize"] == 1
    job = advisor.requests[0]["job"]
    assert all(text_of(job[name]) == byte * LIMIT for name in (*NAMES, *MORE_NAMES))
    assert job["script_bytes"] == 65536
    assert SCRIPT_BYTES // 4 < len(text_of(job["script"])) < 65536
    assert len(advisor.frames[0]) <= MAX_REQUEST + HEADER.size


def test_script_can_be_kept_home(harness: Path, tmp_path: Path, advisor: ScriptedAdvisor) -> None:
    """With script_bytes = 0 only a script's length and hash travel."""
    (tmp_path / "script").write_bytes(b"#!/bin/sh\n")
    with Client(harness) as client:
        client.say("open", write_config(tmp_path, script_bytes=0))
        client.say("script", tmp_path / "script")
        client.ask()
    assert advisor.requests[0]["job"] == {"script_bytes": 10, "script_hash": fnv(b"#!/bin/sh\n")}
