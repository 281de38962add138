"""What reading a request may cost the advisor, and what becomes of one that costs more."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from tests.integration.advisor.conftest import job
from tests.unit.advice.policy.builders import REJECTING, policies

from gpuwaste.advice.adviser import Adviser
from gpuwaste.advice.submit_frames import HEADER, decode_reply, encode_frame
from gpuwaste.advisor.advisor_counters import Counters
from gpuwaste.advisor.advisor_history import Freshness, KnownJobs
from gpuwaste.advisor.request_handler import RequestHandler
from gpuwaste.advisor.submit_server import Connection
from gpuwaste.advisor.uid_lookup import HostUser, Users
from gpuwaste.advisor.verdict_judge import BudgetCounts, Judge
from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.verdict import Verdict
from gpuwaste.testing.lone_advisor import LoneAdvisor

HOSTILE = {
    "newlines": "\n",
    "blanks": " \n\t",
    "comments": "#\n",
    "letters": "m",
    "launchers": "xmpirun ",
    "modules": "module  ",
    "alternatives": "|| ",
}


class _Known:
    """Users who are all known."""

    def get(self, uid: int) -> HostUser:
        return HostUser(f"user{uid}", frozenset(), 0)


class _Journal:
    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []

    def write(self, verdict: Verdict) -> None:
        self.verdicts.append(verdict)


@pytest.fixture
def sockets() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _exchange(stack: ExitStack, document: dict[str, Any]) -> Connection:
    ours, theirs = socket.socketpair()
    stack.callback(theirs.close)
    stack.callback(ours.close)
    exchange = Connection(ours, SystemClock().mono_us())
    exchange.body = encode_frame(document)[HEADER.size :]
    return exchange


def _desk(journal: _Journal, replies: list[dict[str, Any]], reading_s: float) -> RequestHandler:
    clock = SystemClock()
    judge = Judge("gw", Adviser(policies(REJECTING)), BudgetCounts(), clock)  # no predictor: what is not read asks none
    desk = RequestHandler(
        judge, cast("Users", _Known()), KnownJobs(), freshness=Freshness(clock, 60.0), journal=journal,
        counters=Counters(), clock=clock, reading_s=reading_s,
    )  # fmt: skip
    desk.reply = lambda _, frame: replies.append(decode_reply(frame))
    return desk


def test_a_request_beyond_its_budget_passes_and_the_audit_says_why(sockets: ExitStack) -> None:
    """With no CPU to read a script the job passes, is not scored, and its row in the audit says "not read"."""
    journal, replies = _Journal(), list[dict[str, Any]]()
    desk = _desk(journal, replies, reading_s=0.0)
    question = {"op": "submit", "deadline_us": 5_000_000, "job": job(script="#!/bin/sh\n# not read yet\nsrun a\n")}
    desk.answer([_exchange(sockets, question)])
    (reply,), (verdict,) = replies, journal.verdicts
    assert (reply["action"], reply["msg"]) == ("pass", [])
    assert (verdict.action, verdict.would_be, verdict.held, verdict.policy) == ("pass", "pass", "not read", "strict")
    assert desk._counters.asked == {"not read": 1}
    assert (verdict.name, verdict.script) == ("train", "00000000000000aa")


def test_a_request_that_came_too_late_is_not_read(sockets: ExitStack) -> None:
    """Nobody waits for the answer to a request whose deadline has passed, so nothing is spent on its script."""
    journal, replies = _Journal(), list[dict[str, Any]]()
    exchange = _exchange(sockets, {"op": "submit", "deadline_us": 1, "job": job(script="#!/bin/sh\n# late\n")})
    exchange.arrived_us -= 1_000_000
    _desk(journal, replies, reading_s=0.0).answer([exchange])
    assert [reply["action"] for reply in replies] == ["pass"]
    assert journal.verdicts == []


def test_short_requests_do_not_wait_for_long_ones(sockets: ExitStack) -> None:
    """Of requests that came together the short ones are answered first."""
    journal, replies = _Journal(), list[dict[str, Any]]()
    short = job("short", script="#!/bin/sh\n# a script that no other test has had read\n")
    long = [job(f"long{n}", script=f"#!/bin/sh\n# {n}\n" + "mpirunx " * 4000) for n in range(3)]
    questions = [{"op": "submit", "deadline_us": 5_000_000, "job": one} for one in (*long, short)]
    _desk(journal, replies, reading_s=0.0).answer([_exchange(sockets, question) for question in questions])
    assert len(replies) == 4
    assert journal.verdicts[0].name == "short"


@pytest.mark.parametrize("shape", HOSTILE)
def test_a_hostile_script_costs_the_advisor_little_cpu(advisor: LoneAdvisor, shape: str) -> None:
    """A script, name or comment of the most that a plugin sends costs milliseconds, whatever it is made of."""
    advisor.start()
    before_s = _cpu_s(advisor)
    for number in range(20):
        text = f"#!/bin/sh\n#{number}" + HOSTILE[shape] * (40_000 // len(HOSTILE[shape]) // 2)
        reply = advisor.ask(job(name=text[:4096], script=text, comment=text[:4096], tres_per_node=text[:4096]))
        assert reply["action"] == "pass"
    assert _cpu_s(advisor) - before_s < 5.0


def _cpu_s(advisor: LoneAdvisor) -> float:
    """Return the CPU seconds that it has used."""
    assert advisor.process is not None
    stat = Path(f"/proc/{advisor.process.pid}/stat").read_text(encoding="ascii", errors="replace")
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
