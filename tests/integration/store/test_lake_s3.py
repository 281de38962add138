"""A lake whose files are in S3: real DuckLake on a real PostgreSQL, and an S3 service in a process of its own."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.integration.store.drawn_site import hub_of
from tests.integration.store.test_lake import rows
from tests.self_signed import self_signed

from gpuwaste.core.clock import SystemClock
from gpuwaste.core.errors import StoreError
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.ledger.hour_store import upsert_hours
from gpuwaste.store import lake_s3
from gpuwaste.store.hub.lake_store import LakeReader, LakeStore
from gpuwaste.store.lake_database import LakeLocation
from gpuwaste.store.lake_s3 import S3Keys, S3Place
from gpuwaste.testing import s3_server
from gpuwaste.testing.clocks import StandingClock
from gpuwaste.testing.hub_rows import HOUR, batch, hour, record
from gpuwaste.testing.postgres_server import PostgresServer
from gpuwaste.testing.s3_server import S3Server

pytestmark = [pytest.mark.long, pytest.mark.sockets]
KEYS = "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = the'secret\n"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    if reason := s3_server.missing():
        pytest.skip(reason)
    with s3_server.s3_server() as started:
        started.make_bucket("gpuwaste")
        yield started


def s3_keys(postgres: PostgresServer, server: S3Server, tmp_path: Path) -> dict[str, Any]:
    """Return the hub's settings for a new lake in the server's bucket."""
    keys = tmp_path / "keys"
    keys.write_text(KEYS)
    keys.chmod(0o600)
    database = postgres.new_database()
    folder = database.rpartition("=")[2]
    where = {"lake_data": f"s3://gpuwaste/hub/{folder}", "lake_s3_endpoint": server.endpoint}
    return {"store": "lake", "lake_catalog": database, "lake_s3_keys_file": str(keys), **where}


def location(postgres: PostgresServer, server: S3Server, **options: str) -> LakeLocation:
    database = postgres.new_database()
    url = f"s3://gpuwaste/alone/{database.rpartition('=')[2]}"
    return LakeLocation(database, S3Place(url, S3Keys("AKIAEXAMPLE", "the'secret"), server.endpoint, **options))


def test_a_hub_with_a_lake_in_s3_gives_what_a_file_gives(
    postgres: PostgresServer, server: S3Server, tmp_path: Path
) -> None:
    """Two hubs get the same batches and jobs, one keeps them in S3: every row of every table is equal."""
    found = []
    for name, keys in (("file", {}), ("s3", s3_keys(postgres, server, tmp_path))):
        with hub_of(tmp_path / name, StandingClock(HOUR + 4000), **keys) as hub:
            upsert_jobs(hub.store, [record(7, "alice"), record(8, "a\0b")])
            assert [hub.post(batch(hour(job), hour(9))).status for job in (7, 8, 8)] == [200, 200, 200]
            found.append((rows(hub), hub.get(0, "/v1/report?user=alice").json))
    for table in found[0][0]:
        assert found[1][0][table] == found[0][0][table], table
    assert found[1][1] == found[0][1]
    assert len(found[1][0]["hours"]) == 4, "three rows and the columns' names"


def test_a_hub_goes_on_when_s3_answers_again(
    postgres: PostgresServer, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the service hangs a batch is refused so that the agent keeps it; afterwards it is stored, once."""
    for name, value in (("http_timeout", "1"), ("http_retries", "0")):
        monkeypatch.setitem(lake_s3._SETTINGS, name, value)
    with hub_of(tmp_path / "hub", StandingClock(HOUR + 4000), **s3_keys(postgres, server, tmp_path)) as hub:
        assert hub.post(batch(hour(7))).status == 200
        with server.hanging():
            refused = hub.post(batch(hour(8)))
        assert refused.status == 503, refused.body
        assert [hub.post(batch(hour(8))).status for _ in range(2)] == [200, 200]
        assert [found["job_id"] for found in hub.hours()] == [7, 8]


def test_files_in_s3_are_merged_and_read_by_another(postgres: PostgresServer, server: S3Server, tmp_path: Path) -> None:
    """Files of six batches are merged into one; a hub that stands by reads the same rows, and cannot write."""
    place = location(postgres, server)
    store = LakeStore.open_lake(place, SystemClock(), tmp_path)
    for job in range(6):
        upsert_hours(store, [hour(job)])
    store.checkpoint()
    with store.reader() as db:
        found = db.execute("SELECT file_count FROM ducklake_table_info('lake') WHERE table_name = 'hours'").fetchall()
    reader = LakeReader.open_lake(place, SystemClock(), tmp_path)
    assert found == [(1,)]
    assert (reader.counts(), store.counts()["hours"]) == (store.counts(), 6)
    with pytest.raises(StoreError, match="only reads the lake"):
        reader.set_mark("first", 1)
    store.close()
    reader.close()


def test_only_its_folder_has_the_keys(postgres: PostgresServer, server: S3Server, tmp_path: Path) -> None:
    """The keys are for the lake's folder alone and shown in no statement; none are read from a home directory."""
    with (
        closing(LakeStore.open_lake(location(postgres, server), SystemClock(), tmp_path)) as store,
        store.reader() as db,
    ):
        secrets = db.execute("SELECT scope, secret_string, persistent FROM duckdb_secrets()").fetchall()
        names = "secret_directory", "enable_global_s3_configuration"
        settings = [db.execute("SELECT current_setting(?)", [name]).fetchall() for name in names]
    assert len(secrets) == 1
    assert secrets[0][0][0].startswith("s3://gpuwaste/alone/")
    assert "the'secret" not in secrets[0][1]
    assert secrets[0][2] is False
    assert settings == [[("/nonexistent",)], [(False,)]]


def test_a_certificate_that_nobody_signed_is_refused(
    postgres: PostgresServer, server: S3Server, tmp_path: Path
) -> None:
    """With https the service's certificate is checked, against the host's or against lake_s3_ca_file."""
    certificate = tmp_path / "s3.pem"
    self_signed(certificate, certificate.with_suffix(".key"))
    with s3_server.s3_server(certificate) as safe:
        safe.make_bucket("gpuwaste")
        with pytest.raises(StoreError) as caught:
            opened_and_written(location(postgres, safe), tmp_path)
        assert "\n" not in str(caught.value)
        assert opened_and_written(location(postgres, safe, ca_file=str(certificate)), tmp_path) == 1


def opened_and_written(place: LakeLocation, scratch: Path) -> int:
    """Return how many hours there are after one was stored."""
    with closing(LakeStore.open_lake(place, SystemClock(), scratch)) as store:
        upsert_hours(store, [hour(7)])
        return store.counts()["hours"]


def test_what_cannot_be_opened_is_one_line(postgres: PostgresServer, server: S3Server, tmp_path: Path) -> None:
    """No such service and no such bucket: a StoreError of one line, at the opening or at the first batch."""
    keys, database = S3Keys("AKIAEXAMPLE", "the'secret"), postgres.new_database
    for place in (
        LakeLocation(database(), S3Place("s3://gpuwaste/x", keys, "http://127.0.0.1:9")),
        LakeLocation(database(), S3Place("s3://no-such-bucket/x", keys, server.endpoint)),
    ):
        with pytest.raises(StoreError) as caught:
            opened_and_written(place, tmp_path)
        assert str(caught.value).startswith(f"lake {place.data}: "), str(caught.value)
        assert "\n" not in str(caught.value)
        assert "secret" not in str(caught.value)
