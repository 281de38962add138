"""`gpuwaste look` on a real cluster, as a user without rights and with the smallest installation."""

import os
import pwd
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.runtime import Runtime, shared_runtime

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@dataclass(frozen=True, slots=True)
class Looker:
    """Bob, with a directory that he may write to, and a home in which he may not."""

    cluster: LoopbackCluster
    path: Path
    runtime: Runtime

    def look(self, *words: str) -> str:
        """Run the command; return what it printed on one line."""
        command = ["env", "-C", str(self.path), *self.runtime.command("look", *words)]
        return " ".join(self.cluster.run(command, user="bob", env=self.runtime.env, timeout_s=300).stdout.split())


@pytest.fixture
def looker(cluster: LoopbackCluster) -> Iterator[Looker]:
    """Return bob with his directory; it and the write permission of his home are put back."""
    path, home, bob = cluster.directory / "look", cluster.directory / "home" / "bob", pwd.getpwnam("bob")
    shutil.rmtree(path, ignore_errors=True)
    (path / "own").mkdir(parents=True)
    os.chown(path / "own", bob.pw_uid, bob.pw_gid)
    mode = home.stat().st_mode
    home.chmod(0o555)
    try:
        yield Looker(cluster, path / "own", shared_runtime(path / "runtime", frozenset({"look"})))
    finally:
        home.chmod(mode)
        shutil.rmtree(path)


def test_an_ordinary_user_sees_what_accounting_and_the_machine_say(looker: Looker) -> None:
    """Bob reads jobs of all users, the machine's GPUs and the pages; nothing is written but in his folder."""
    cluster = looker.cluster
    cluster.reset()
    jobs = [cluster.sbatch("sleep 2", user, gres="gpu:1") for user in ("alice", "bob")]
    for job in jobs:
        cluster.wait_accounted(job)
    before = _owned_by_bob()
    text = looker.look("-S", "now-2hours")
    assert "Jobs of all users: " in text
    assert "GPU-hours of " in text
    assert "of the machine, " in text
    assert "cannot be read" not in text
    folder = looker.path / "gpuwaste-look"
    assert "alice" in (folder / "pages" / "states.html").read_text(encoding="utf-8")
    assert sorted(file.name for file in (folder / "machine").iterdir()) == [
        "sacctmgr-show-configuration.txt",
        "sacctmgr-show-event.txt",
        "sacctmgr-show-reservation.txt",
        "sacctmgr-show-user.txt",
        "scontrol-show-config.txt",
        "scontrol-show-node.txt",
        "scontrol-show-partition.txt",
    ]
    assert [file.name for file in looker.path.iterdir()] == ["gpuwaste-look"]
    assert _owned_by_bob() == before
    again = looker.look("--from", "gpuwaste-look")
    assert again.partition(" * ")[2] == text.partition(" * ")[2]


def _owned_by_bob() -> set[str]:
    uid = pwd.getpwnam("bob").pw_uid
    places = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 where programs write by themselves
    return {str(file) for place in places for file in place.iterdir() if file.lstat().st_uid == uid}
