"""Who may have a backup, and that a copy is handed out once, whole, as of its instant."""

import io
import tarfile
from pathlib import Path

from tests.integration.hub.rig import Answer, Rig, running_hub

from gpuwaste.store.hub.backup_format import read_backup
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.hub_rows import batch, hour

OPERATOR, ALICE, CAROL = 1004, 1001, 1003
AGENT = 900


def post(hub: Rig, uid: int) -> Answer:
    return hub.post(b"{}", uid, target="/v1/backup")


def ready(hub: Rig) -> bool:
    return bool(hub.get(OPERATOR, "/v1/backup").json["state"] == "ready")


def test_users_coordinators_and_agents_get_no_backup(tmp_path: Path) -> None:
    """Each of the three requests answers 403 to who may not read everything, and nothing is copied."""
    with running_hub(tmp_path) as hub:
        for uid in (ALICE, CAROL, AGENT):
            assert post(hub, uid).status == 403
            assert hub.get(uid, "/v1/backup").status == 403
            assert hub.get(uid, "/v1/backup/file").status == 403
        assert hub.get(OPERATOR, "/v1/backup").json == {"state": "none"}


def test_root_gets_one_over_the_socket(tmp_path: Path) -> None:
    """Root and an operator may ask, also where Slurm names no administrator; what comes in later is not in the copy."""
    with running_hub(tmp_path) as hub:
        hub.post(batch(hour()))
        assert hub.get(OPERATOR, "/v1/backup/file").status == 503
        assert hub.get(0, "/v1/backup").status == 200
        assert post(hub, 0).json["state"] == "copying"
        wait_until(lambda: ready(hub), 60, "the copy")
        hub.post(batch(hour(job=8)))
        body = hub.get(OPERATOR, "/v1/backup/file").body
        about = read_backup(io.BytesIO(body), "the answer")
        assert (about.rows["hours"], about.cluster) == (1, "gw")
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            assert tar.getnames() == ["backup.json", "hub.duckdb", "sums.json"]
        assert hub.get(OPERATOR, "/v1/backup/file").status == 503
        assert hub.get(OPERATOR, "/v1/backup").json == {"state": "none"}
        assert not (tmp_path / "backup.unfinished").exists()


def test_a_second_wish_gets_a_fresh_copy(tmp_path: Path) -> None:
    """A copy that nobody fetched is replaced by the next one, which has what came in since."""
    with running_hub(tmp_path) as hub:
        for job in (7, 8):
            hub.post(batch(hour(job=job)))
            post(hub, OPERATOR)
            wait_until(lambda: ready(hub), 60, "the copy")
        about = read_backup(io.BytesIO(hub.get(OPERATOR, "/v1/backup/file").body), "the answer")
        assert about.rows["hours"] == 2
