"""A hub whose store is moved: it serves while most rows are copied, and nothing that it acknowledged is lost."""

from pathlib import Path

import pytest
from tests.integration.hub.test_daemon import ENVELOPE, one, stored

from gpuwaste.cli.main import main
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.lone_hub import LoneHub, munged_path
from gpuwaste.testing.postgres_server import PostgresServer

pytestmark = [
    pytest.mark.long,
    pytest.mark.sockets,
    pytest.mark.skipif(munged_path() is None, reason="munged is not installed (Debian: munge)"),
]


def test_a_hub_is_moved_with_a_short_stop(
    tmp_path: Path, munge: str, postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """To the lake and back: a pass while the hub takes hours, a stop, the rest; each hub has every hour."""
    place, jobs = tmp_path / "hub", iter(range(1, 9))
    place.mkdir()
    keys = {"lake_catalog": postgres.new_database(), "lake_data": str(tmp_path / "lake")}
    hub = LoneHub(place, munge, hub={**keys, "store": "file"})
    config = tmp_path / "cli.toml"

    def move(to: str) -> str:
        own = {**keys, "store": "file" if to == "lake" else "lake", "state_dir": str(place / "state")}
        config.write_text(to_toml({"common": {"hub_url": hub.url, "munge_socket": munge}, "hub": own}))
        assert main(["hub", "move", "--to", to, "--config", str(config), *(["--force"] * (to == "file"))]) == 0
        return capsys.readouterr().out

    try:
        for to in ("lake", "file"):
            hub.start()
            hub.client().post_hours(ENVELOPE, one(next(jobs)))
            assert "stop the hub and run the command again" in move(to)
            hub.client().post_hours(ENVELOPE, one(next(jobs)))
            hub.stop()
            assert f'set store = "{to}" in section [hub] of {config}' in move(to)
            hub.hub = {**keys, "store": to}
        hub.start()
        hub.client().post_hours(ENVELOPE, one(next(jobs)))
        assert stored(hub) == 5
        assert {path.name for path in (place / "state").glob("*mov*")} <= {"hub.duckdb.before-move", "move.lock"}
    finally:
        hub.stop()
