"""The advisor as a process: what it answers, whom, and what survives it."""

import signal
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.integration.advisor.conftest import USER, job, jobs

from gpuwaste.advice.predict.bundle import BASELINE, Registry
from gpuwaste.advice.predict.manifest import read_bundle
from gpuwaste.advice.submit_frames import HEADER, VERSION, encode_frame
from gpuwaste.advice.verdicts.verdict_batch import VerdictLine
from gpuwaste.advisor.advisor_history import SAVED
from gpuwaste.advisor.verdict_outbox import VerdictOutbox
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import ParseError
from gpuwaste.core.underuse import UNDER_USE, UnderUse
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.lone_advisor import LoneAdvisor, read_reply, run_as, spooled
from gpuwaste.testing.lone_hub import LoneHub
from gpuwaste.testing.patience import patient

WARN = """
[policy]
name = "strict"
mode = "{mode}"
[targets.failure]
warn = 0.5
{reject}
[sample]
pass_ratio = 0.0
[floor]
precision = 0.0
"""


def policy(advisor: LoneAdvisor, mode: str = "warn", reject: str = "") -> None:
    (advisor.policies / "10-strict.toml").write_text(WARN.format(mode=mode, reject=reject), encoding="utf-8")


def shipped(hub: LoneHub, count: int) -> list[dict[str, Any]]:
    """Return the verdicts that the hub has, once there are so many; the hub ends for that."""
    metrics = f"{hub.url}/metrics"

    def enough() -> bool:
        with urllib.request.urlopen(metrics, timeout=patient(30)) as answer:  # noqa: S310 a loopback address of our own
            lines = answer.read().decode().splitlines()
        rows = [line for line in lines if line.startswith('gpuwaste_hub_store_rows{table="verdicts"}')]
        return bool(rows) and float(rows[0].split()[-1]) >= count

    wait_until(enough, 60, f"{count} verdicts at the hub", lambda: hub.log.read_text()[-500:], poll_s=0.2)
    hub.stop()
    store = HubStore.open(hub.directory / "state" / "hub.duckdb", SystemClock())
    try:
        with store.reader() as db:
            columns = "id, action, held, mode, would_be, reasons, model_hash"
            found = db.execute(f"SELECT {columns} FROM verdicts ORDER BY id").fetchall()  # noqa: S608 a constant
            return [dict(zip(columns.split(", "), row, strict=True)) for row in found]
    finally:
        store.close()


def test_a_fresh_install_is_silent_and_records(told: LoneAdvisor, hub: LoneHub) -> None:
    """Shadow: the user sees a pass without a word, the hub a warning that would have been, with his own numbers."""
    told.start()
    told.wait_fresh()
    reply = told.ask(job())
    assert (reply["action"], reply["msg"], reply["code"]) == ("pass", [], 0)
    assert len(reply["id"]) == 16
    assert reply["as_of"] > 0
    (verdict,) = shipped(hub, 1)
    assert (verdict["id"], verdict["action"], verdict["held"], verdict["mode"]) == (
        reply["id"],
        "pass",
        "shadow",
        "shadow",
    )
    assert verdict["would_be"] == "warn"
    assert "6 of your last 6 jobs named train failed" in str(verdict["reasons"])


@pytest.mark.long
def test_a_warning_has_his_own_numbers_and_others_see_nothing(told: LoneAdvisor) -> None:
    """Who failed six times is told so; another name of his, and another user, hear nothing."""
    policy(told)
    told.start()
    told.wait_fresh()
    reply = told.ask(job())
    assert reply["action"] == "warn"
    assert any("6 of your last 6 jobs named train failed" in line for line in reply["msg"])
    assert told.ask(job("fine"))["action"] == "pass"
    assert told.ask(job(user="nobody"))["action"] == "pass"
    assert told.metric('gpuwaste_advisor_verdicts_total{action="warn",held="",mode="warn",would_be="warn"}') == 1


def test_a_reject_needs_the_script_that_failed(told: LoneAdvisor) -> None:
    """A script that is not known to be the one that failed is warned of, never rejected."""
    policy(told, "reject", "reject = 0.8")
    told.start()
    told.wait_fresh()
    assert told.ask(job())["action"] == "warn"


def test_only_slurm_user_and_root_are_answered(advisor: LoneAdvisor) -> None:
    """Another user's connection ends without a byte, and is counted."""
    advisor.start()
    assert advisor.ask(job())["action"] == "pass"
    code = (
        "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        "try:\n s.sendall(b'x')\n print(len(s.recv(99)))\nexcept OSError: print(0)"
    )
    done = run_as(65534, ["/usr/bin/python3", "-c", code, str(advisor.path)])
    assert (done.stdout.strip(), done.returncode) == ("0", 0), done.stderr
    assert advisor.metric('gpuwaste_advisor_requests_total{result="refused"}') == 1


@pytest.mark.parametrize(
    "data",
    [
        b"garbage that is no frame at all",
        HEADER.pack(1 << 20, VERSION) + b"x" * 5000,
        HEADER.pack(10, VERSION + 1) + b"0123456789",
        HEADER.pack(0, VERSION),
        HEADER.pack(4, VERSION) + b"{}  and more than that",
    ],
    ids=["garbage", "a megabyte", "another version", "empty", "two frames"],
)
def test_what_is_no_frame_is_hung_up_on(advisor: LoneAdvisor, data: bytes) -> None:
    """The next request is answered."""
    advisor.start()
    with advisor.connect() as sock:
        sock.sendall(data)
        with pytest.raises((ParseError, ConnectionError)):
            read_reply(sock)
    assert advisor.ask(job())["action"] == "pass"


@pytest.mark.parametrize(
    "body", [b"{", b"[1]", b'{"job":7}', b"\xff\xfe", b"[" * 30_000, b'{"job":{"user_id":{}},"uid":[]}']
)
def test_a_frame_that_cannot_be_read_passes(advisor: LoneAdvisor, body: bytes) -> None:
    """A user's text must not be able to make the plugin's breaker open: the answer is pass."""
    advisor.start()
    with advisor.connect() as sock:
        sock.sendall(HEADER.pack(len(body), VERSION) + body)
        assert read_reply(sock)["action"] == "pass"


def test_silent_and_half_sent_connections_are_dropped(advisor: LoneAdvisor) -> None:
    """Five hundred peers that say nothing, or half of it, keep nobody from an answer, and are gone soon."""
    advisor.start()
    frame = encode_frame({"op": "submit", "uid": 0, "job": job()})
    socks = [advisor.connect() for _ in range(500)]
    for number, sock in enumerate(socks):
        sock.sendall(frame[: number % 40])
    assert advisor.ask(job())["action"] == "pass"
    for sock in socks:
        with pytest.raises((ParseError, ConnectionError)):
            read_reply(sock)
        sock.close()
    assert advisor.metric('gpuwaste_advisor_requests_total{result="silent"}') == 500


def test_a_request_in_pieces_is_put_together(advisor: LoneAdvisor) -> None:
    """A frame may come byte by byte."""
    advisor.start()
    frame = encode_frame({"op": "submit", "uid": 0, "deadline_us": 5_000_000, "job": job()})
    with advisor.connect() as sock:
        for place in range(0, len(frame), 7):
            sock.sendall(frame[place : place + 7])
        assert read_reply(sock)["action"] == "pass"


def test_kill_9_loses_no_verdict_that_was_answered(told: LoneAdvisor, hub: LoneHub) -> None:
    """What was answered while the hub was away is there once the next advisor has run, however often one was killed."""
    told.hub_url = "http://127.0.0.1:9"
    ids = set()
    for _ in range(2):
        told.start()
        ids |= {told.ask(job())["id"] for _ in range(50)}
        told.kill()
    assert {row["id"] for row in spooled(told.state / "spool")} >= ids - {
        row.id for row in _waiting(told.state / "verdicts.sqlite")
    }
    told.hub_url = hub.url
    told.start()
    assert {row["id"] for row in shipped(hub, 100)} == ids


def _waiting(path: Path) -> list[VerdictLine]:
    outbox = VerdictOutbox(path)
    batch = outbox.take()
    outbox.close()
    return list(batch.rows) if batch else []


def test_the_end_is_in_order(told: LoneAdvisor) -> None:
    """After SIGTERM the exit code is 0, the socket is gone, the history is saved, and serves where the hub is away."""
    policy(told)
    told.start()
    told.wait_fresh()
    assert told.kill(signal.SIGTERM) == 0
    assert not told.path.exists()
    told.hub_url = "http://127.0.0.1:9"
    told.start()
    assert "history-loaded: job history up to event 0," not in told.said.splitlines()[-2]
    reply = told.ask(job())
    assert (reply["action"], reply["as_of"]) == ("pass", 0)
    assert told.metric('gpuwaste_advisor_verdicts_total{action="pass",held="stale",mode="warn",would_be="warn"}') == 1


@pytest.mark.long
def test_another_rule_of_under_use_at_the_hub_is_taken_over(told: LoneAdvisor, hub: LoneHub) -> None:
    """A saved history was counted by the rule of before: it is read again, and the answers rest on the new one."""

    def ended_with() -> UnderUse:
        assert told.kill(signal.SIGTERM) == 0
        return Follower.load(told.state / SAVED, "gw", HistoryState.load).state.under_use

    policy(told)
    told.start()
    told.wait_fresh()
    assert ended_with() == UNDER_USE
    hub.stop()
    hub.hub = {"underused_below_pct": 20.0}
    hub.start()
    health = hub.client().get
    wait_until(lambda: health("/v1/health")["under_use"]["below_pct"] == 20, 60, "the rule", hub.log.read_text)
    told.hub_url = hub.url
    told.start()
    words = "the hub's rule of under-use is now mean below 20 %, over 30 s, 80% known; job history is read again"
    wait_until(lambda: words in told.said, 60, "another history", lambda: told.said)
    told.wait_fresh()
    assert any("6 of your last 6 jobs named train failed" in line for line in told.ask(job())["msg"])
    assert ended_with() == UnderUse(below_pct=20.0)


def test_broken_policies_keep_those_before(told: LoneAdvisor) -> None:
    """SIGHUP with a file that cannot be read changes nothing and says it once; a good one counts at once."""
    policy(told)
    told.start()
    told.wait_fresh()
    assert told.process is not None
    (told.policies / "20-bad.toml").write_text("[policy\n", encoding="utf-8")
    told.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "20-bad.toml" in told.said, 60, "the error to be said", lambda: told.said)
    assert told.ask(job())["action"] == "warn"
    (told.policies / "20-bad.toml").unlink()
    policy(told, "shadow")
    told.process.send_signal(signal.SIGHUP)
    wait_until(lambda: told.ask(job())["action"] == "pass", 60, "the new policies", lambda: told.said)
    assert told.said.count("policies-not-reloaded: ") == 1


def test_a_living_advisor_keeps_its_socket_and_a_dead_ones_is_replaced(advisor: LoneAdvisor) -> None:
    """A second advisor on the same socket ends with one line; after kill -9 the next one takes it."""
    advisor.start()
    config = advisor.directory / "second.toml"
    text = (advisor.directory / "advisor.toml").read_text(encoding="utf-8")
    text = text.replace(f'"{advisor.state}"', f'"{advisor.directory}/other"').replace(str(advisor.port), "0")
    config.write_text(text, encoding="utf-8")
    argv = [sys.executable, "-m", "gpuwaste.cli", "advisor", "run", "--config", str(config)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=patient(60), check=False)
    assert done.returncode != 0
    assert "already listens there" in done.stderr
    assert advisor.ask(job())["action"] == "pass"
    advisor.kill()
    assert advisor.path.exists()
    advisor.start()
    assert advisor.ask(job())["action"] == "pass"


def test_the_champion_changes_under_load_without_a_lost_request(told: LoneAdvisor, hub: LoneHub) -> None:
    """Every request is answered while a model comes into use, and while a corrupt one does not."""
    told.start()
    told.wait_fresh()
    stop, answered, failed = threading.Event(), [0], list[str]()

    def load() -> None:
        while not stop.is_set():
            try:
                answered[0] += told.ask(job())["action"] == "pass"
            except (OSError, ParseError) as error:
                failed.append(str(error))

    asking = threading.Thread(target=load)
    asking.start()
    registry = Registry(told.models)
    told.models.mkdir()
    name = registry.add(BASELINE)
    registry.promote(name)
    wait_until(lambda: "model-loaded: " in told.said, 30, "the model to be in use", lambda: told.said)
    model = told.models / name / "failure.onnx"
    whole = read_bundle(told.models / name)[2]
    wait_until(lambda: told.ask({}, op="ping")["model"] == whole, 60, "the doctor's ping to name the model")
    model.write_bytes(model.read_bytes()[:100])
    (told.models / name / "manifest.json").touch()
    wait_until(lambda: "stays in use" in told.said, 30, "the corrupt model to be refused", lambda: told.said)
    before = answered[0]
    wait_until(lambda: answered[0] > before + 20, 60, "more answers")
    stop.set()
    asking.join()
    assert not failed
    last = told.ask(job())["id"]
    models = {row["id"]: row["model_hash"] for row in shipped(hub, answered[0] + 1)}
    assert models[last] == whole


def test_a_trial_is_scored_and_not_recorded(told: LoneAdvisor, hub: LoneHub) -> None:
    """`sbatch --test-only` hears what the job would hear, and the hub nothing."""
    policy(told)
    told.start()
    told.wait_fresh()
    assert told.ask(job(test_only=True))["action"] == "warn"
    real = told.ask(job())
    assert [row["id"] for row in shipped(hub, 1)] == [real["id"]]


def test_a_modification_of_an_unknown_job_passes(told: LoneAdvisor) -> None:
    """What the advisor does not know of a job it does not guess."""
    told.start()
    reply = told.ask({"job_id": 999, "user_id": 0, "time_limit": 5}, op="modify")
    assert (reply["action"], reply["id"]) == ("pass", "")


def test_the_plugins_counters_are_told(advisor: LoneAdvisor) -> None:
    """The largest totals count, by plugin; what is no number is passed over."""
    advisor.start()
    for opened in (2, 5, 3):
        advisor.ask(job(), counters={"opened": opened, "asked": "many", "missed": -1})
    assert advisor.metric('gpuwaste_advisor_plugin_events_total{event="opened",via="c"}') == 5
    assert not any('event="asked"' in name for name in advisor.metrics())


def test_no_users_name_is_in_the_metrics(told: LoneAdvisor) -> None:
    """The metrics may be read by anybody."""
    told.start()
    told.wait_fresh()
    told.ask(job())
    assert not any(USER in name for name in told.metrics())
    assert jobs("x", 1, "FAILED")[0].user == USER
