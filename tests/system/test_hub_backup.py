"""Backups of a real hub that takes hours meanwhile: what is restored reports the same, and half of one is refused."""

import contextlib
import hashlib
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bench.ingest import START, make_batches

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.importers.page_files import PageFiles
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.ledger import LedgerSettings
from gpuwaste.ledger.reports.report_builder import report_document
from gpuwaste.net.batch import Envelope
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.database import Database
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged
from gpuwaste.testing.patience import patient

pytestmark = pytest.mark.skipif(munged_path() is None, reason="needs munged: make packages")
JOBS = 1500


@contextlib.contextmanager
def hub_in(directory: Path) -> Iterator[LoneHub]:
    """Run a hub whose store has jobs and a raw page."""
    state = directory / "state"
    store = HubStore.open(state / "hub.duckdb", SystemClock())
    upsert_jobs(
        store,
        [
            JobRecord(
                "gw", 1000 + i, 5, user=f"u{i % 7}", start=START - 600, end=1_700_400_000, gpus=8, state="COMPLETED"
            )
            for i in range(JOBS)
        ],
    )
    store.close()
    pages = PageFiles(state / "hub.duckdb")
    pages.prepare()
    pages.keep(b"a raw page" * 1000)
    (state / "corrections.npz").write_bytes(b"learnt")
    with private_munged() as munge:
        hub = LoneHub(directory, munge)
        hub.start()
        try:
            yield hub
        finally:
            hub.stop()


def command(hub: LoneHub, *words: str | Path) -> "subprocess.Popen[str]":
    """Start `gpuwaste hub ...` against the hub."""
    config = hub.directory / "cli.toml"
    config.write_text(
        f'[common]\nhub_url = "{hub.url}"\nmunge_socket = "{hub.munge_socket}"\n'
        f'[hub]\nstate_dir = "{hub.directory / "state"}"\n'
    )
    return subprocess.Popen(
        [sys.executable, "-m", "gpuwaste.cli", "hub", *map(str, words), "--config", str(config)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=patient(120))
    return process.returncode, out, err


def document(store: Path) -> object:
    """Return the whole report of a store that no hub has."""
    db = Database.open(store, "hub")
    try:
        return report_document(db, "cluster", "", 0, 2**40, LedgerSettings(), 2_000_000_000).to_json()
    finally:
        db.close()


def count(store: Path) -> int:
    db = Database.open(store, "hub")
    try:
        return int(db.rows("counts")[0]["hours"])
    finally:
        db.close()


def test_a_backup_under_ingest_is_one_instant_and_comes_back_whole(tmp_path: Path) -> None:
    """A backup has all that was acknowledged before, in whole batches; a hub goes on from there to the same."""
    batches = make_batches(8_000, 1, 100_000)
    envelope = Envelope("gw", "n1", "boot", "test")
    with hub_in(tmp_path / "one") as hub:
        client, acked, stop = hub.client(), [0], threading.Event()

        def feed() -> None:
            for batch in batches:
                client.post_hours(envelope, batch)
                acked.append(acked[-1] + len(batch.rows))
                if stop.is_set():
                    return

        feeder = threading.Thread(target=feed)
        feeder.start()
        wait_until(lambda: len(acked) > 3, 60, "batches")
        before = acked[-1]
        code, out, err = finished(command(hub, "backup", tmp_path / "kept.tar", "--json"))
        stop.set()
        feeder.join(60)
        assert (code, err) == (0, "")
        made = json.loads(out)
        assert made["sha256"] == hashlib.sha256((tmp_path / "kept.tar").read_bytes()).hexdigest()
        assert made["rows"]["jobs"] == JOBS
        assert made["rows"]["hours"] >= before
        assert made["rows"]["hours"] in acked
        assert stat.S_IMODE((tmp_path / "kept.tar").stat().st_mode) == 0o600
        assert not (hub.directory / "state" / "backup.unfinished").exists()
        hub.stop()
        (tmp_path / "two" / "state").mkdir(parents=True)
        other = LoneHub(tmp_path / "two", hub.munge_socket)
        assert finished(command(other, "restore", tmp_path / "kept.tar", "--sha256", made["sha256"]))[0] == 0
        state = other.directory / "state"
        kept = document(state / "hub.duckdb")
        assert count(state / "hub.duckdb") == made["rows"]["hours"]
        assert (state / "corrections.npz").read_bytes() == b"learnt"
        assert PageFiles(state / "hub.duckdb").read(hashlib.sha256(b"a raw page" * 1000).hexdigest())
        other.start()
        for batch in batches:  # an agent that was not acknowledged sends again: each row counts once
            other.client().post_hours(envelope, batch)
        other.stop()
        hub.start()
        for batch in batches:
            hub.client().post_hours(envelope, batch)
        hub.stop()
        assert kept != document(state / "hub.duckdb") == document(hub.directory / "state" / "hub.duckdb")


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a backup of a small hub."""
    place = tmp_path_factory.mktemp("backup")
    with hub_in(place / "hub") as hub:
        hub.client().post_hours(Envelope("gw", "n1", "boot", "test"), make_batches(500, 1, 1_000_000)[0])
        code, _, err = finished(command(hub, "backup", place / "b.tar"))
        assert (code, err) == (0, "")
    return place / "b.tar"


def restored(source: Path, place: Path, *words: str) -> tuple[int, str]:
    """Restore into a directory; returns the exit code and what was said."""
    (place / "state").mkdir(parents=True, exist_ok=True)
    code, _, err = finished(command(LoneHub(place, "", port=1), "restore", source, *words))
    assert not (place / "state" / "restore.unfinished").exists()
    return code, err


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def without_sums(data: bytes) -> bytes:
    return data[: data.rindex(b"sums.json")] + bytes(1024)


def newer(data: bytes) -> bytes:
    """Return the data with a schema of one digit more in the place of the first one and the blank before it."""
    return re.sub(rb'"schema": (\d+)', rb'"schema":9\1', data, count=1)


def other_format(data: bytes) -> bytes:
    return data.replace(b'"format": 1', b'"format": 2', 1)


def with_a_link(_: bytes) -> bytes:
    return _tar(tarfile.SYMTYPE, "hub.duckdb")


def with_a_path(_: bytes) -> bytes:
    return _tar(tarfile.REGTYPE, "../../etc/cron.d/x")


def _tar(kind: bytes, name: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        about = json.dumps(
            {"format": 1, "schema": 5, "version": "0", "created_utc": 1, "cluster": "", "rows": {}}
        ).encode()
        first = tarfile.TarInfo("backup.json")
        first.size = len(about)
        tar.addfile(first, io.BytesIO(about))
        second = tarfile.TarInfo(name)
        second.type, second.linkname = kind, "/etc/passwd"
        tar.addfile(second)
    return stream.getvalue()


def with_holes(data: bytes) -> bytes:
    """Put a sparse store of a terabyte behind the first member: it would fill the disk."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        first = tar.extractfile("backup.json")
        assert first is not None
        about = first.read()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("backup.json")
        member.size = len(about)
        tar.addfile(member, io.BytesIO(about))
        sparse = tarfile.TarInfo("hub.duckdb")
        sparse.size, sparse.pax_headers = 1, {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(1 << 40)}
        tar.addfile(sparse, io.BytesIO(b"x"))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda _: b"", "not a complete backup"),
        (lambda _: b"not a tar" * 1000, "not a complete backup"),
        (cut, "not a complete backup"),
        (without_sums, "incomplete backup"),
        (flipped, "SHA-256 differs"),
        (newer, "SHA-256 differs"),
        (other_format, "has format 2"),
        (with_a_link, "in the wrong place"),
        (with_holes, "in the wrong place"),
        (with_a_path, "which does not belong in a backup"),
    ],
)
def test_a_spoilt_backup_is_refused_in_one_line(
    backup: Path, tmp_path: Path, spoil: Callable[[bytes], bytes], said: str
) -> None:
    """A file that is cut, changed, of another version or none at all is refused, and nothing has changed."""
    (tmp_path / "bad.tar").write_bytes(spoil(backup.read_bytes()))
    code, err = restored(tmp_path / "bad.tar", tmp_path / "place")
    assert (code, err.count("\n")) == (1, 1)
    assert said in err
    assert not list((tmp_path / "place" / "state").iterdir())


def test_a_newer_schema_is_refused(backup: Path, tmp_path: Path) -> None:
    """A backup of a newer version, whole by its sums, is refused with the word to update."""
    data = backup.read_bytes()
    with tarfile.open(backup) as tar:
        about = tar.extractfile("backup.json")
        assert about is not None
        old = about.read()
    new = newer(old)
    assert json.loads(new)["schema"] > json.loads(old)["schema"]
    sums = data.replace(old, new).replace(
        hashlib.sha256(old).hexdigest().encode(), hashlib.sha256(new).hexdigest().encode()
    )
    (tmp_path / "new.tar").write_bytes(sums)
    code, err = restored(tmp_path / "new.tar", tmp_path / "place")
    assert (code, "newer than this version's" in err) == (1, True)


def test_a_store_that_is_there_is_kept(backup: Path, tmp_path: Path) -> None:
    """A restore refuses to replace a store, with --force it does, and the old one stays beside it, its log too."""
    place = tmp_path / "place"
    (place / "state").mkdir(parents=True)
    old = HubStore.open(place / "state" / "hub.duckdb", SystemClock())
    old.set_mark("old", 1)
    old.close()
    before = (place / "state" / "hub.duckdb").read_bytes()
    (place / "state" / "history").mkdir()
    assert restored(backup, place)[0] == 1
    assert (place / "state" / "hub.duckdb").read_bytes() == before
    assert restored(backup, place, "--force") == (0, "")
    assert (place / "state" / "hub.duckdb.before-restore").read_bytes() == before
    assert not (place / "state" / "history").exists()
    assert count(place / "state" / "hub.duckdb") == 500


def test_a_running_hub_s_store_is_not_replaced(backup: Path, tmp_path: Path) -> None:
    """With --force too, a restore under a running hub is refused, and the hub goes on."""
    with hub_in(tmp_path / "hub") as hub:
        code, _, err = finished(command(hub, "restore", backup, "--force"))
        assert (code, "stop it first" in err) == (1, True)
        hub.client().post_hours(Envelope("gw", "n1", "boot", "test"), make_batches(10, 1, 1_000_000)[0])


def test_links_and_other_sums_are_refused(backup: Path, tmp_path: Path) -> None:
    """A store that is a symbolic link is not replaced, nor is a file restored whose sum is not the one given."""
    place = tmp_path / "place"
    (place / "state").mkdir(parents=True)
    (tmp_path / "elsewhere").write_bytes(b"precious")
    (place / "state" / "hub.duckdb").symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in restored(backup, place, "--force")[1]
    assert (tmp_path / "elsewhere").read_bytes() == b"precious"
    assert restored(backup, tmp_path / "other", "--sha256", "0" * 64)[0] == 2


def test_targets_that_are_there_or_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    """A backup replaces no file without --force, follows no link, and says so when its directory is not there."""
    with hub_in(tmp_path / "hub") as hub:
        there, link = tmp_path / "there", tmp_path / "link"
        there.write_text("precious")
        link.symlink_to(there)
        for target, words in (
            (there, "already exists"),
            (link, "symbolic link"),
            (tmp_path / "no" / "b.tar", "not a directory"),
        ):
            code, _, err = finished(command(hub, "backup", target))
            assert (code, words in err) == (2, True), err
        (tmp_path / ".b.tar.unfinished").symlink_to(there)
        assert finished(command(hub, "backup", tmp_path / "b.tar"))[0] == 1
        assert there.read_text() == "precious"
        assert finished(command(hub, "backup", there, "--force"))[0] == 0
        assert finished(command(hub, "backup", tmp_path / "hub"))[0] == 0
        assert len(list((tmp_path / "hub").glob("gpuwaste-hub-*.tar"))) == 1


def test_a_full_disk_leaves_no_file_and_a_hub_that_goes_on(tmp_path: Path) -> None:
    """A backup to a file system without room ends with one line, leaves nothing there, and the hub takes hours."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", small], check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    try:
        with hub_in(tmp_path / "hub") as hub:
            code, _, err = finished(command(hub, "backup", small / "b.tar"))
            assert (code, err.count("\n")) == (1, 1), err
            assert not list(small.iterdir())
            hub.client().post_hours(Envelope("gw", "n1", "boot", "test"), make_batches(10, 1, 1_000_000)[0])
            (small / "state").mkdir()
            whole = tmp_path / "b.tar"
            assert finished(command(hub, "backup", whole))[0] == 0
        place = LoneHub(small, "", port=1)
        code, _, err = finished(command(place, "restore", whole))
        assert (code, "free space" in err) == (1, True), err
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("who", ["command", "hub"])
def test_a_kill_in_the_middle_leaves_no_half_backup(tmp_path: Path, who: str) -> None:
    """Kill -9 of the command or of the hub while the file is written: no such file; the next backup is whole."""
    with hub_in(tmp_path / "hub") as hub:
        for batch in make_batches(20_000, 1, 1_000_000):
            hub.client().post_hours(Envelope("gw", "n1", "boot", "test"), batch)
        PageFiles(hub.directory / "state" / "hub.duckdb").keep(os.urandom(64_000_000))
        target, unfinished = tmp_path / "b.tar", tmp_path / ".b.tar.unfinished"
        process = command(hub, "backup", target)
        wait_until(
            lambda: (unfinished.exists() and unfinished.stat().st_size > 0) or process.poll() is not None, 60, "a part"
        )
        if who == "command":
            process.send_signal(signal.SIGKILL)
        else:
            hub.kill()
        code, _, _ = finished(process)
        assert code != 0
        assert not target.exists()
        if who == "command":
            assert restored(unfinished, tmp_path / "place")[0] == 1
        else:
            assert not unfinished.exists()
            hub.start()
        assert not (hub.directory / "state" / "backup.unfinished").exists()
        assert finished(command(hub, "backup", target))[0] == 0
        assert restored(target, tmp_path / "place") == (0, "")
