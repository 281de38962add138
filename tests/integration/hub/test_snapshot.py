"""GET /v1/history/snapshot: an advisor boots from the hub's state and goes on where it stands."""

import io
import tarfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.integration.hub.rig import Rig
from tests.integration.hub.test_predict import ended
from tests.integration.hub.test_verdicts import said
from tests.unit.advisor.verdicts import verdict

from gpuwaste.advice.adviser import AdviceRequest, Adviser
from gpuwaste.advice.policy.policy_loading import load_files
from gpuwaste.advice.predict.prediction_service import Predictions
from gpuwaste.advice.predict.vectors import vector_of
from gpuwaste.advice.verdicts.verdict_batch import encode_verdict
from gpuwaste.advice.verdicts.verdict_store import VerdictStore
from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import AuthError, RetryableWireError, StoreError, WireError
from gpuwaste.jobs.history.history_follower import Follower
from gpuwaste.jobs.history.history_state import HistoryState
from gpuwaste.jobs.run_store import history_events, upsert_jobs
from gpuwaste.net.batch import Batch, Envelope
from gpuwaste.net.hub_client import HubClient
from gpuwaste.net.snapshot_tar import read_tar, write_tar
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing.hub_rows import AGENT_UID

ENVELOPE = Envelope("gw", "ctl", "boot", "1")


class Issuer:
    """Credentials of the rig's checker for one uid."""

    secret = False

    def __init__(self, uid: int) -> None:
        self._uid = uid
        self._nonce = 0

    def issue(self, digest: str) -> str:
        """Return a fresh one."""
        self._nonce += 1
        return f"Munge {self._uid}:127.0.0.1:client-{self._nonce}:{digest}"

    def check_ack(self, credential: str, digest: str) -> None:
        """Take the rig's own signature."""
        if credential != f"ack:{self._uid}:{digest}":
            raise AuthError("not the hub's")


def client(hub: Rig, uid: int = AGENT_UID) -> HubClient:
    return HubClient(f"http://127.0.0.1:{hub.port}", Issuer(uid))


def test_the_state_travels_and_goes_on(hub: Rig, tmp_path: Path) -> None:
    """What was loaded stands at the hub's own event, answers alike, and takes the next events."""
    upsert_jobs(hub.store, [ended(n) for n in range(1, 6)])
    hub.hub.get(Predictions).step()
    place = tmp_path / "advisor" / "history"
    client(hub).get_snapshot(place)
    follower = Follower.load(place, "gw", HistoryState.load)
    assert follower.seq == hub.store.counts()["last_event"] == 10
    upsert_jobs(hub.store, [ended(6)])
    follower.apply(history_events(hub.store, follower.seq, 99))
    hub.hub.get(Predictions).step()
    live = hub.hub.get(Predictions)._live
    assert live is not None
    asked = JobRequest("alice", 1_700_009_000, account="proj1", partition="gpu", name="train")
    mine = follower.state
    assert isinstance(mine, HistoryState)
    np.testing.assert_array_equal(vector_of(mine, asked), vector_of(live._follower.state, asked))
    assert len(follower.recall.runs("alice", "train")) == 6


def test_a_replayed_history_knows_the_scripts_that_failed(hub: Rig, tmp_path: Path) -> None:
    """A hub that starts without a saved state tells advisors with which scripts jobs failed: the audit has them."""
    failed = replace(ended(1), state="FAILED", verdict_id=verdict(1).id)
    store = VerdictStore(hub.store, SystemClock())
    store.add([replace(verdict(1), script="00000000000000ff")], "ctl")
    upsert_jobs(hub.store, [failed, ended(2)])
    hub.hub.get(Predictions).step()
    client(hub).get_snapshot(tmp_path / "history")
    recall = Follower.load(tmp_path / "history", "gw", HistoryState.load).recall
    assert recall.script_says(failed.user, failed.name, "00000000000000ff") == "same"
    assert recall.script_says(failed.user, failed.name, "00000000000000aa") == "changed"


def test_a_snapshot_replaces_the_one_before(hub: Rig, tmp_path: Path) -> None:
    """As a whole: no file of the old one is left, and no half of a new one."""
    hub.hub.get(Predictions).step()
    place = tmp_path / "history"
    place.mkdir()
    (place / "old").write_text("old")
    client(hub).get_snapshot(place)
    assert "old" not in {path.name for path in place.iterdir()}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("history")] == ["history"]


def test_a_user_gets_none_and_a_starting_hub_asks_to_come_back(hub: Rig, tmp_path: Path) -> None:
    """The errors are those of every other question; nothing is written."""
    with pytest.raises(AuthError, match="operators"):
        client(hub, 1001).get_snapshot(tmp_path / "history")
    with pytest.raises(RetryableWireError, match="still reading"):
        client(hub).get_snapshot(tmp_path / "history")
    assert not (tmp_path / "history").exists()


def test_a_hub_without_the_extra_says_so(hub: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """501: the advisor must not wait for what will not come."""

    def begin(_: Predictions) -> None:
        raise ModuleNotFoundError(name="numpy")

    monkeypatch.setattr(Predictions, "_begin", begin)
    hub.hub.get(Predictions).step()
    with pytest.raises(WireError, match="extra") as caught:
        client(hub).get_snapshot(tmp_path / "history")
    assert not isinstance(caught.value, RetryableWireError)


@pytest.mark.long
def test_predictions_go_on_while_a_snapshot_is_taken(hub: Rig) -> None:
    """Snapshots in one thread, predictions and events in others: all are answered, each snapshot is whole."""
    hub.hub.get(Predictions).step()
    live = hub.hub.get(Predictions)._live
    assert live is not None
    failed: list[BaseException] = []

    def snapshots() -> None:
        try:
            for _ in range(5):
                live._saved_at_us = None
                file = io.BytesIO()
                live.snapshot(file)
                file.seek(0)
                with tarfile.open(fileobj=file) as tar:
                    assert len(tar.getnames()) == 3
        except BaseException as error:  # noqa: BLE001 told by the test's thread
            failed.append(error)

    thread = threading.Thread(target=snapshots)
    thread.start()
    for job in range(1, 30):
        upsert_jobs(hub.store, [ended(job)])
        hub.hub.get(Predictions).step()
        live.advise(Adviser(load_files(())), AdviceRequest(JobRequest("alice", 1_700_009_000, name="train")))
    thread.join(60)
    assert failed == []


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a/b", ".hidden", "UPPER", "x" * 99])
def test_a_tar_with_other_names_is_refused(tmp_path: Path, name: str) -> None:
    """Nothing is written outside, and what was there stays."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(tarfile.TarInfo(name))
    file.seek(0)
    with pytest.raises(WireError, match="not a file of the job history"):
        read_tar(file, tmp_path / "in" / "history")
    assert not (tmp_path / "in" / "history").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE])
def test_a_tar_with_links_is_refused(tmp_path: Path, kind: bytes) -> None:
    """A link, a directory, a pipe is no state."""
    file, member = io.BytesIO(), tarfile.TarInfo("state")
    member.type, member.linkname = kind, "/etc/passwd"
    with tarfile.open(fileobj=file, mode="w") as tar:
        tar.addfile(member)
    file.seek(0)
    with pytest.raises(WireError, match="not a file of the job history"):
        read_tar(file, tmp_path / "history")


@pytest.mark.parametrize("headers", [{"GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 40)}, {}])
def test_a_tar_with_holes_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    """A sparse file of a terabyte takes a kilobyte of the tar, and would fill the disk."""
    member = tarfile.TarInfo("state")
    member.pax_headers, member.size = headers, 1
    raw = bytearray(member.tobuf(tarfile.PAX_FORMAT) if headers else member.tobuf(tarfile.GNU_FORMAT))
    if not headers:
        raw[156:157] = tarfile.GNUTYPE_SPARSE
        raw[386:410] = b"%011o\0%011o\0" % (0, 1)
        raw[483:495] = b"%011o\0" % (8**11 - 1)
        raw[148:156] = b"%06o\0 " % (sum(raw[:148]) + 8 * 0x20 + sum(raw[156:512]))
    file = io.BytesIO(bytes(raw) + b"x" + bytes(511) + bytes(1024))
    with tarfile.open(fileobj=file) as tar:
        assert tar.getmembers()[0].issparse()
        assert tar.getmembers()[0].size > 10**9
    file.seek(0)
    with pytest.raises(WireError, match="not a file of the job history"):
        read_tar(file, tmp_path / "history")
    assert not (tmp_path / "history").exists()


def test_half_a_tar_and_garbage_are_one_error(tmp_path: Path) -> None:
    """Cut anywhere, or no tar at all: one line, and the state that was there stays."""
    source, place = tmp_path / "source", tmp_path / "history"
    source.mkdir()
    (source / "state").write_bytes(b"x" * 100_000)
    file = io.BytesIO()
    write_tar(source, file)
    read_tar(io.BytesIO(file.getvalue()), place)
    for data in (file.getvalue()[:50_000], b"garbage" * 1000):
        with pytest.raises(WireError, match="cannot be unpacked"):
            read_tar(io.BytesIO(data), place)
    assert (place / "state").read_bytes() == b"x" * 100_000
    with pytest.raises(StoreError, match="cannot be packed"):
        write_tar(tmp_path / "nowhere", io.BytesIO())


def test_verdicts_are_posted_with_a_checked_acknowledgement(hub: Rig) -> None:
    """What the hub rejects is named by line; a hub that refuses the whole batch says so in its own words."""
    rows = tuple(encode_verdict(row) for row in (said(1), verdict(2, cluster="other"), said(3)))
    ack = client(hub).post_verdicts(ENVELOPE, Batch(rows))
    assert (ack.accepted, list(ack.rejected)) == (2, [3])
    with pytest.raises(AuthError, match="may not send verdicts"):
        client(hub, 1001).post_verdicts(ENVELOPE, Batch(rows[:1]))
    with pytest.raises(WireError, match="not served here"):
        client(hub).post_verdicts(Envelope("other", "ctl", "b", "1"), Batch(rows[:1]))
