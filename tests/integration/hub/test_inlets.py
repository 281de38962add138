"""POST /v1/inlets/NAME over real HTTP: what is signed is taken, what is forged is refused and counted."""

import base64
import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook
from tests.integration.hub.rig import Answer, Rig, running_hub
from tests.integration.hub.test_now import ALICE, OPER
from tests.unit.act.events.site import SECRET, WEBHOOK, fs_full, sent, written

from gpuwaste.act.events.event_types import InletsDocument
from gpuwaste.act.events.inlet_parts import InletParts
from gpuwaste.core.codec import convert
from gpuwaste.core.refusal import Refusal
from gpuwaste.jobs.cluster_facts import ClusterFacts
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.patience import patient

TARGET = "/v1/inlets/storage"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Run a hub with one inlet, which takes ten events a minute."""
    folder = tmp_path / "inlets.d"
    written(folder, WEBHOOK.replace("[inlet]", "[inlet]\nper_minute = 10"))
    slurm = FakeSlurm(levels={"oper": "Operator"})
    with running_hub(tmp_path, slurm, hub_keys={"inlets_dir": str(folder)}) as found:
        found.hub.get(ClusterFacts).refresh()
        yield found


def signed(body: bytes, secret: str = SECRET, name: str = "msg", at: float | None = None) -> dict[str, str]:
    """Return the headers of a sender who uses Standard Webhooks' library."""
    seconds = int(time.time() if at is None else at)
    signature = Webhook(secret).sign(name, datetime.fromtimestamp(seconds, UTC), body.decode())
    return {"webhook-id": name, "webhook-timestamp": str(seconds), "webhook-signature": signature}


def post(rig: Rig, body: bytes, headers: dict[str, str] | None = None, target: str = TARGET) -> Answer:
    return rig.send("POST", target, body, signed(body) if headers is None else headers)


def site_events(rig: Rig, uid: int = OPER) -> list[dict[str, Any]]:
    answer = rig.get(uid, "/v1/events?kinds=site.*")
    assert answer.status == 200, answer.body
    found: list[dict[str, Any]] = answer.json["events"]
    return found


def metric(rig: Rig, line: str) -> bool:
    return line in rig.send("GET", "/metrics").body.decode()


def test_a_signed_event_gets_into_the_stream_once(rig: Rig) -> None:
    """Alone or in a batch, sent again or not: one event, which operators see and users do not."""
    answer = post(rig, sent(fs_full()))
    assert (answer.status, answer.json) == (200, {"accepted": 1, "repeated": 0, "quarantined": 0, "reasons": []})
    assert post(rig, sent(fs_full(), fs_full(2))).json["repeated"] == 1
    first, second = site_events(rig)
    assert (first["type"], first["subject"]) == ("gpuwaste.site.fs_full", "site/storage")
    assert (first["data"]["file_system"], second["data"]["sent_id"]) == ("/scratch", "e2")
    assert site_events(rig, ALICE) == []
    assert metric(rig, 'gpuwaste_hub_inlet_events_total{inlet="storage",result="accepted"} 2.0')


def test_an_event_that_is_not_valid_is_set_aside(rig: Rig) -> None:
    """The valid ones beside it are taken; operators see which, why, and what was sent; others are refused."""
    bad = fs_full(2, data={"file_system": "/scratch", "used_ratio": 97})
    answer = post(rig, sent(fs_full(1), bad)).json
    assert (answer["accepted"], answer["quarantined"]) == (1, 1)
    assert answer["reasons"] == ["data: used_ratio: expected `float` <= 1.0"]
    document = convert(rig.get(OPER, "/v1/inlets").json, InletsDocument, "inlets")
    (row,) = document.quarantine
    assert (row.inlet, row.id, row.kind, row.reason) == ("storage", "e2", "site.fs_full", answer["reasons"][0])
    assert json.loads(row.raw) == bad
    assert (document.inlets[0].accepted, document.inlets[0].kept) == (1, 1)
    assert rig.get(ALICE, "/v1/inlets").status == 403


def test_a_forged_request_is_refused_and_counted(rig: Rig) -> None:
    """A wrong secret, an old signature, another body, no signature, a user's own credential, an inlet that is none.

    Each gets the same bytes, and nothing is taken.
    """
    body = sent(fs_full())
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    answers = [
        post(rig, body, signed(body, other)),
        post(rig, body, signed(body, at=time.time() - 3600)),
        post(rig, sent(fs_full(2)), signed(body)),
        post(rig, body, {}),
        post(rig, body, {"Authorization": rig.credential(ALICE, "POST", TARGET, body)}),
        post(rig, body, {"Authorization": rig.credential(OPER, "POST", TARGET, body)}),
        post(rig, body, signed(body), "/v1/inlets/other"),
        post(rig, body, signed(body), "/v1/inlets/..%2Fstorage%00"),
    ]
    assert {answer.status for answer in answers[:7]} == {401}
    assert len({answer.body for answer in answers[:7]}) == 1
    assert answers[7].status in {401, 404}
    assert site_events(rig) == []
    for reason, count in (("signature", 2), ("clock", 1), ("unsigned", 3)):
        line = f'gpuwaste_hub_inlet_refused_requests_total{{inlet="storage",reason="{reason}"}} {count}.0'
        assert metric(rig, line), line
    assert metric(rig, 'gpuwaste_hub_inlet_refused_requests_total{inlet="",reason="unknown"} ')


def test_a_captured_request_is_taken_once(rig: Rig) -> None:
    """Sent again by whoever saw it, it is refused and costs no budget, also after a restart of the hub.

    A sender who got no answer signs anew, and is told that the event is known.
    """
    body = sent(*(fs_full(n) for n in range(4)))
    captured = signed(body)
    assert post(rig, body, captured).json["accepted"] == 4
    again = [post(rig, body, captured) for _ in range(5)]
    assert {answer.status for answer in again} == {409}
    assert "was accepted before" in again[0].json["error"]
    folder = rig.directory / "inlets.d"
    restarted = InletParts(rig.store, rig.clock, lambda: "gw", folder)
    with pytest.raises(Refusal, match="was accepted before"):
        restarted.take("storage", captured, body)
    assert post(rig, body, signed(body, name="msg-2")).json["repeated"] == 4
    assert metric(rig, 'gpuwaste_hub_inlet_refused_requests_total{inlet="storage",reason="replay"} 5.0')


def test_a_request_that_had_to_wait_may_come_again(rig: Rig) -> None:
    """It was refused for the budget: nothing was taken, so the same bytes are good later."""
    assert post(rig, sent(*(fs_full(n) for n in range(10)))).json["accepted"] == 10
    body = sent(fs_full(11))
    headers = signed(body)
    assert post(rig, body, headers).status == 429
    restarted = InletParts(rig.store, rig.clock, lambda: "gw", rig.directory / "inlets.d")  # its budget is full
    assert restarted.take("storage", headers, body).accepted == 1


def test_a_body_of_ten_megabytes_is_refused_in_one_line(rig: Rig) -> None:
    """By its length, none of it sent yet, and counted; the hub answers the next one."""
    connection = HTTPConnection("127.0.0.1", rig.port, timeout=patient(20))
    with contextlib.closing(connection):
        connection.putrequest("POST", TARGET)
        connection.putheader("Content-Length", "10000000")
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 413
        assert json.load(answer)["error"] == "the body is larger than 1048576 bytes: send smaller batches"
    assert metric(rig, 'gpuwaste_hub_inlet_refused_requests_total{inlet="storage",reason="size"} 1.0')
    assert post(rig, sent(fs_full())).json["accepted"] == 1


def test_a_large_event_within_the_body_s_bound_is_set_aside(rig: Rig) -> None:
    """An event has 16 KiB at most; what is kept of it is short."""
    answer = post(rig, sent(fs_full(data={"file_system": "x" * 500_000}))).json
    assert answer["quarantined"] == 1
    assert "16384 at most" in answer["reasons"][0]
    assert len(rig.get(OPER, "/v1/inlets").json["quarantine"][0]["raw"]) == 2000


def test_more_than_the_rate_has_to_wait(rig: Rig) -> None:
    """The eleventh event of a minute is told when to come again; nothing of its request is taken."""
    assert post(rig, sent(*(fs_full(n) for n in range(10)))).json["accepted"] == 10
    answer = post(rig, sent(fs_full(10)))
    assert answer.status == 429
    assert 1 <= int(answer.headers["retry-after"]) <= 7
    assert len(site_events(rig)) == 10


def test_a_body_that_is_no_list_of_events_is_one_line(rig: Rig) -> None:
    """Too many, or cut: refused as a whole; what is no JSON at all is set aside as one event."""
    assert "101 events" in post(rig, sent(*[{}] * 101)).json["error"]
    assert "the body is not JSON" in post(rig, b"[{}, ").json["error"]
    assert post(rig, b"nonsense").json["quarantined"] == 1
