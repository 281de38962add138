"""Commands as jobs of the real Slurm: a node works, and what comes out is what they give directly."""

import os
import pwd
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.cli.test_train import swf

from gpuwaste.store.duckdb_connection import connect
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.runtime import EXTRAS, Runtime, shared_runtime

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]  # a cluster, and jobs that learn
USER = "gpuwaste"


@dataclass(frozen=True, slots=True)
class Place:
    """A directory that every node of the cluster sees, with a log and a configuration, of the service's user."""

    cluster: LoopbackCluster
    path: Path
    runtime: Runtime

    @property
    def log(self) -> str:
        """The log's path."""
        return str(self.path / "log.swf")

    def gpuwaste(self, *words: str) -> str:
        """Run a command as the service's user in the directory; return what it printed."""
        command = self.runtime.command(*words, "--config", str(self.path / "gpuwaste.toml"))
        moved = ["env", "-C", str(self.path), *command]
        return self.cluster.run(moved, user=USER, env=self.runtime.env, timeout_s=300).stdout

    def as_job(self, *words: str) -> str:
        """Run a command as a job; return its log once the job has ended well."""
        told = self.gpuwaste(*words, "--as-job", "--partition", "cpu", "--time", "10")
        found = re.fullmatch(r"submitted as job (\d+); log: (\S+)\n", told)
        assert found is not None, told
        written = Path(found[2])
        try:
            self.cluster.wait_job(int(found[1]), "COMPLETED", timeout_s=400)
        except Exception as error:
            said = written.read_text(encoding="utf-8") if written.exists() else "no log"
            raise AssertionError(said) from error
        return written.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def place(cluster: LoopbackCluster) -> Iterator[Place]:
    """Return the directory, and the programs where the user can run them."""
    path = cluster.directory / "as-job"
    shutil.rmtree(path, ignore_errors=True)
    (path / "models").mkdir(parents=True)
    config = path / "gpuwaste.toml"
    config.write_text(f'[common]\ncluster = "gw"\nmodels_dir = "{path}/models"\n')
    log = swf(path / "log.swf")
    owner = pwd.getpwnam(USER)
    for file in (path, path / "models", log, config):
        os.chown(file, owner.pw_uid, owner.pw_gid)
    yield Place(cluster, path, shared_runtime(path / "runtime", EXTRAS | {"train"}))
    shutil.rmtree(path)


def test_a_job_trains_and_the_model_is_in_the_registry(place: Place) -> None:
    """The command ends when Slurm has the job; the job's log has what the command would have printed."""
    words = ["--swf", place.log, "--targets", "failure", "--trials", "0", "--threads", "1", "--challenge"]
    assert "is the model in use now" in place.as_job("model", "train", *words)
    assert (place.path / "models" / "champion").is_symlink()


def test_an_evaluation_is_the_same_to_the_byte(place: Place) -> None:
    """With one seed and one thread the job's document is what the command prints itself."""
    words = ["--swf", place.log, "--targets", "failure", "--trials", "2", "--seed", "7", "--threads", "1", "--json"]
    assert place.as_job("model", "evaluate", *words) == place.gpuwaste("model", "evaluate", *words)


def test_an_import_writes_the_same_runs(place: Place) -> None:
    """Every run of the store that the job wrote is that of a store written directly, and none is missing."""
    told = place.as_job("history", "import", "--swf", place.log, "--into", "job/jobs.duckdb")
    place.gpuwaste("history", "import", "--swf", place.log, "--into", "direct/jobs.duckdb")
    assert "400 runs" in told
    assert runs(place.path / "job" / "jobs.duckdb") == runs(place.path / "direct" / "jobs.duckdb")


def runs(store: Path) -> Sequence[tuple[object, ...]]:
    """Return all runs of a store but for the instants of the import."""
    with connect(store, read_only=True) as reader:
        return reader.execute("SELECT * FROM jobs ORDER BY ALL").fetchall()
