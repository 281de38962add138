"""job_submit/gpuwaste itself, loaded by a stand-in for slurmctld that fills a real job_desc_msg_t, under sanitizers."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.client_driver import Slurmctld, to_hex, write_config

from gpuwaste.advice.submit_frames import encode_reply
from gpuwaste.testing.scripted_advisor import ScriptedAdvisor, text_of
from gpuwaste.testing.submit_plugins import build_plugins

VERDICT = "0123456789abcdef"
NO_VAL, NO_VAL16, NO_VAL64 = 0xFFFFFFFE, 0xFFFE, 0xFFFFFFFFFFFFFFFE
INFINITE, INFINITE16 = 0xFFFFFFFF, 0xFFFF
MEM_PER_CPU = 0x8000000000000000
ACCOUNTING_POLICY = 2050
TEXTS = [
    "name",
    "account",
    "partition",
    "qos",
    "tres_per_job",
    "tres_per_node",
    "tres_per_socket",
    "tres_per_task",
    "cpus_per_tres",
    "mem_per_tres",
    "features",
    "comment",
    "admin_comment",
    "reservation",
    "dependency",
    "array_inx",
]
NUMBERS = [
    "user_id",
    "time_min",
    "min_nodes",
    "max_nodes",
    "min_cpus",
    "max_cpus",
    "num_tasks",
    "cpus_per_task",
    "ntasks_per_node",
    "pn_min_cpus",
    "sockets_per_node",
    "het_job_offset",
    "shared",
]
NARROW = {"cpus_per_task", "ntasks_per_node", "pn_min_cpus", "sockets_per_node", "shared"}


class Script:
    """What the advisor answers next."""

    def __init__(self) -> None:
        self.next: bytes = b""
        self.say("pass")

    def say(self, action: Any, *lines: str, verdict: str = VERDICT, **options: Any) -> None:
        """Answer so from now on."""
        self.next = encode_reply(verdict, action, lines, **{"as_of": int(time.time()), **options})

    def __call__(self, _: dict[str, Any]) -> bytes:
        return self.next


@pytest.fixture
def script() -> Script:
    """Return the advisor's answers."""
    return Script()


@pytest.fixture
def asked(tmp_path: Path, script: Script) -> Iterator[ScriptedAdvisor]:
    """Serve those answers."""
    with ScriptedAdvisor(tmp_path / "advisor.sock", script) as serving:
        yield serving


@pytest.fixture
def slurmctld(harness: Path, tmp_path: Path, asked: ScriptedAdvisor) -> Iterator[Slurmctld]:
    """Load the plugin."""
    assert asked.path.exists()
    with Slurmctld(harness, write_config(tmp_path)) as program:
        yield program


def job_of(asked: ScriptedAdvisor) -> dict[str, Any]:
    """Return the last request's job."""
    job: dict[str, Any] = asked.requests[-1]["job"]
    return job


def test_every_member_is_sent(slurmctld: Slurmctld, asked: ScriptedAdvisor, tmp_path: Path) -> None:
    """Each member of the descriptor arrives under its own name, the script with length and hash."""
    texts = {name: f"{name} <{index}>" for index, name in enumerate(TEXTS)}
    numbers = {name: 1000 + index for index, name in enumerate(NUMBERS)}
    rest = {"group_id": 77, "time_limit": 90, "pn_min_memory": 4096, "begin_time": 1_900_000_000}
    slurmctld.fill({**texts, **numbers, **rest})
    (tmp_path / "job.sh").write_text("#!/bin/sh\ntrue\n")
    slurmctld.say("script", tmp_path / "job.sh")
    assert slurmctld.call("submit", uid=4242).code == 0
    job = job_of(asked)
    assert asked.requests[0]["uid"] == 4242
    assert asked.requests[0]["slurm"].count(".") == 2
    assert (job.pop("script"), job.pop("script_bytes"), len(job.pop("script_hash"))) == ("#!/bin/sh\ntrue\n", 15, 16)
    expected = {"group_id": 77, "time_limit": 90, "mem_per_node_mb": 4096, "begin_time": 1_900_000_000}
    assert job == {**texts, **numbers, **expected}


def test_unset_members_are_left_out(slurmctld: Slurmctld, asked: ScriptedAdvisor) -> None:
    """NULL, NO_VAL and INFINITE of each width are absent; a real zero is not."""
    slurmctld.call("submit")
    assert job_of(asked) == {}
    for name in NUMBERS:
        for value in (NO_VAL16, INFINITE16) if name in NARROW else (NO_VAL, INFINITE):
            slurmctld.say("reset")
            slurmctld.fill({name: value})
            slurmctld.call("submit")
            assert job_of(asked) == {}
        slurmctld.say("reset")
        slurmctld.fill({name: 0})
        slurmctld.call("submit")
        assert job_of(asked) == {name: 0}


@pytest.mark.parametrize(
    ("members", "sent"),
    [
        ({"time_limit": INFINITE}, {"time_limit": "infinite"}),
        ({"time_limit": NO_VAL}, {}),
        ({"pn_min_memory": MEM_PER_CPU | 2048}, {"mem_per_cpu_mb": 2048}),
        ({"pn_min_memory": 0}, {"mem_per_node_mb": 0}),
        ({"pn_min_memory": NO_VAL64}, {}),
        ({"begin_time": 0}, {}),
        ({"begin_time": NO_VAL}, {}),
    ],
)
def test_members_with_rules_of_their_own(
    slurmctld: Slurmctld, asked: ScriptedAdvisor, members: dict[str, int], sent: dict[str, Any]
) -> None:
    """Limits without end, memory by CPU or by node, and begin times are told apart."""
    slurmctld.fill(members)
    slurmctld.call("submit")
    assert job_of(asked) == sent


def test_hostile_texts_at_every_limit(slurmctld: Slurmctld, asked: ScriptedAdvisor, tmp_path: Path) -> None:
    """Texts far over their limits, binary ones and a script of megabytes: all arrive, cut, in one frame."""
    long = b"\x01\xff" * 100_000
    slurmctld.fill(dict.fromkeys(TEXTS, long))
    (tmp_path / "job.sh").write_bytes(b"\xfe\x1b" * 2_500_000)
    slurmctld.say("script", tmp_path / "job.sh")
    assert slurmctld.call("submit").code == 0
    job = job_of(asked)
    assert all(text_of(job[name]) == long[:1024] for name in TEXTS)
    assert job["script_bytes"] == 5_000_000
    assert not asked.errors


def test_token_and_silence(slurmctld: Slurmctld, script: Script) -> None:
    """With pass and annotate the user sees nothing; the token stands beside what an operator wrote."""
    for action in ("pass", "annotate"):
        script.say(action, "not for the user")
        slurmctld.say("reset")
        slurmctld.fill({"admin_comment": "ticket 7"})
        called = slurmctld.call("submit")
        assert (called.code, called.message, called.admin_comment) == (0, "", f"ticket 7;gw={VERDICT}")


def test_warning_and_refusal(slurmctld: Slurmctld, script: Script) -> None:
    """A warning is a message; a refusal is a message and an ESLURM number, the plugin's own where none is given."""
    script.say("warn", "one", "two")
    called = slurmctld.call("submit")
    assert (called.code, called.message) == (0, "one\ntwo")
    for code, returned in ((0, ACCOUNTING_POLICY), (2051, 2051), (1, ACCOUNTING_POLICY), (9999, ACCOUNTING_POLICY)):
        script.say("reject", "no", code=code)
        slurmctld.say("reset")
        called = slurmctld.call("submit")
        assert (called.code, called.message) == (returned, "no")


def test_message_of_another_plugin_stays(slurmctld: Slurmctld, script: Script) -> None:
    """Where another plugin of JobSubmitPlugins has spoken, both messages reach the user."""
    script.say("warn", "ours")
    slurmctld.say("message", to_hex("theirs"))
    assert slurmctld.call("submit").message == "theirs\nours"


def test_token_that_a_request_brings_along(slurmctld: Slurmctld, script: Script, asked: ScriptedAdvisor) -> None:
    """An older job's token is replaced, and taken away where there is no verdict to put there."""
    old = "ticket;gw=aaaaaaaaaaaaaaaa"
    slurmctld.fill({"admin_comment": old})
    assert slurmctld.call("submit").admin_comment == f"ticket;gw={VERDICT}"
    script.next = b""
    slurmctld.fill({"admin_comment": old})
    assert slurmctld.call("submit").admin_comment == "ticket"
    assert len(asked.requests) == 2


def test_kill_switch_touches_nothing(slurmctld: Slurmctld, tmp_path: Path, asked: ScriptedAdvisor) -> None:
    """With the kill switch the descriptor leaves the plugin as it came."""
    (tmp_path / "disable").touch()
    slurmctld.fill({"admin_comment": "ticket;gw=aaaaaaaaaaaaaaaa"})
    called = slurmctld.call("submit")
    assert (called.code, called.admin_comment, called.message) == (0, "ticket;gw=aaaaaaaaaaaaaaaa", "")
    assert not asked.requests


@pytest.mark.parametrize(
    ("members", "time_min"),
    [
        ({"time_limit": 60}, 30),
        ({"time_limit": INFINITE}, 30),
        ({"time_limit": 60, "time_min": 0}, 30),
        ({"time_limit": 60, "time_min": 45}, 45),
        ({"time_limit": 30}, NO_VAL),
        ({"time_limit": 20}, NO_VAL),
        ({"time_limit": NO_VAL}, NO_VAL),
        ({"time_limit": 60, "deadline": 1_900_000_000}, NO_VAL),
    ],
)
def test_time_min(slurmctld: Slurmctld, script: Script, members: dict[str, int], time_min: int) -> None:
    """A minimum time limit is set only where the job has none and slurmctld cannot refuse the job for it."""
    script.say("annotate", time_min=30)
    slurmctld.fill(members)
    assert slurmctld.call("submit").time_min == time_min


def test_time_min_is_not_touched_without_word(slurmctld: Slurmctld, script: Script) -> None:
    """A reply without time_min leaves it."""
    script.say("warn", "x")
    slurmctld.fill({"time_limit": 60})
    assert slurmctld.call("submit").time_min == NO_VAL


@pytest.mark.parametrize(
    ("members", "sent"),
    [
        ({"job_id_str": "12"}, {"job_id": 12}),
        ({"job_id_str": "12_[1-3]"}, {"job_id": 12, "job_id_str": "12_[1-3]"}),
        ({"job_id_str": "12+1"}, {"job_id": 12, "job_id_str": "12+1"}),
        ({"job_id": 9}, {"job_id": 9}),
        ({"job_id": 9, "job_id_str": "x"}, {"job_id": 9}),
        ({}, {}),
    ],
)
def test_job_of_a_modification(
    slurmctld: Slurmctld, asked: ScriptedAdvisor, members: dict[str, str | int], sent: dict[str, Any]
) -> None:
    """A modification names its job, as scontrol gives it or as older programs do."""
    slurmctld.fill({"group_id": 5, **members})
    slurmctld.call("modify")
    assert asked.requests[-1]["op"] == "modify"
    assert job_of(asked) == sent


def test_modification_leaves_what_it_cannot_see(slurmctld: Slurmctld, script: Script) -> None:
    """A modification sets admin_comment only where the request does, once, however often slurmctld calls."""
    assert slurmctld.call("modify").admin_comment == ""
    slurmctld.fill({"admin_comment": "new"})
    assert slurmctld.call("modify").admin_comment == f"new;gw={VERDICT}"
    script.say("pass", verdict="b" * 16)
    assert slurmctld.call("modify").admin_comment == f"new;gw={'b' * 16}"
    script.next = b""
    assert slurmctld.call("modify").admin_comment == f"new;gw={'b' * 16}"


def test_refused_modification(slurmctld: Slurmctld, script: Script) -> None:
    """A modification can be refused; 22.05 has no place for the reason."""
    script.say("reject", "no", code=2051)
    assert slurmctld.call("modify").code == 2051


@pytest.mark.parametrize(
    ("line", "argv", "test_only"),
    [
        ("sbatch --test-only job.sh", ["job.sh"], True),
        ("sbatch -p gpu --test-only job.sh --x", ["job.sh", "--x"], True),
        ("sbatch job.sh", ["job.sh"], False),
        ("sbatch job.sh --test-only", ["job.sh", "--test-only"], False),
        ("sbatch --test-only job.sh --test-only", ["job.sh", "--test-only"], True),
        ("sbatch job.sh a --test-only b", ["job.sh", "a --test-only b"], False),
        ("sbatch --test-onlyx job.sh", ["job.sh"], False),
        ("--test-only", [], True),
    ],
)
def test_test_only(
    slurmctld: Slurmctld, asked: ScriptedAdvisor, line: str, argv: list[str], *, test_only: bool
) -> None:
    """--test-only is known from the command line, where it is not one of the script's own arguments."""
    slurmctld.fill({"submit_line": line})
    for word in argv:
        slurmctld.say("argv", to_hex(word))
    slurmctld.call("submit")
    assert job_of(asked).get("test_only", False) == test_only


@pytest.mark.parametrize("member", ["comment", "name", "script", "work_dir", "env"])
def test_test_only_in_a_value(slurmctld: Slurmctld, asked: ScriptedAdvisor, member: str) -> None:
    """A value of another option that holds the word is no --test-only: nobody evades the audit by his comment."""
    slurmctld.fill({"submit_line": "sbatch --x=a --test-only job.sh"})
    if member == "env":
        slurmctld.say("env", to_hex("PATH=/bin"))
        slurmctld.say("env", to_hex("A=a --test-only"))
    else:
        slurmctld.fill({member: "a --test-only"})
    slurmctld.call("submit")
    assert "test_only" not in job_of(asked)


def test_symbols_of_the_shipped_plugin() -> None:
    """The plugin shows slurmctld its seven symbols and no other, and needs only Slurm and the C library."""
    plugin = build_plugins("c") / "job_submit_gpuwaste.so"
    argv = ["nm", "-D", "--defined-only", "--format=posix", str(plugin)]
    lines = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    ours = "fini init job_modify job_submit plugin_name plugin_type plugin_version"
    assert sorted(line.split()[0] for line in lines) == ours.split()
    needed = subprocess.run(["readelf", "-d", str(plugin)], capture_output=True, text=True, check=True).stdout
    assert [line.split("[")[1] for line in needed.splitlines() if "NEEDED" in line] == ["libc.so.6]"]
