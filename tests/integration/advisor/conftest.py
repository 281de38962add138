"""An advisor as a process, a hub with a history, and what a plugin sends."""

import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.core.clock import SystemClock
from gpuwaste.jobs.run_store import upsert_jobs
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.store.hub.hub_store import HubStore
from gpuwaste.testing.lone_advisor import LoneAdvisor
from gpuwaste.testing.lone_hub import LoneHub, munged_path, private_munged

T0 = 1_700_000_000
USER = "daemon"  # a user of every Debian


@pytest.fixture(scope="session")
def munge() -> Iterator[str]:
    if munged_path() is None:
        pytest.skip("munged is not installed (Debian: munge)")
    with private_munged() as path:
        yield path


@pytest.fixture
def place() -> Iterator[Path]:
    """Make a short path, as a Unix socket needs, that other users may enter."""
    with tempfile.TemporaryDirectory(prefix="gwadv", dir="/tmp") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture
def hub(place: Path, munge: str) -> Iterator[LoneHub]:
    """Make a hub, not yet started, that knows six failed jobs named train and three good ones named fine."""
    tell(place / "state", [*jobs("train", 6, "FAILED"), *jobs("fine", 3, "COMPLETED", first=100)])
    lone = LoneHub(place, munge)
    yield lone
    lone.stop()


@pytest.fixture
def advisor(place: Path, munge: str) -> Iterator[LoneAdvisor]:
    """Make an advisor, not yet started, whose hub is not there."""
    (place / "policies.d").mkdir()
    lone = LoneAdvisor(place, "http://127.0.0.1:9", munge)
    yield lone
    lone.stop()


@pytest.fixture
def told(advisor: LoneAdvisor, hub: LoneHub) -> Iterator[LoneAdvisor]:
    """Make an advisor, not yet started, whose hub runs."""
    hub.start()
    advisor.hub_url = hub.url
    yield advisor
    advisor.stop()


def tell(state_dir: Path, records: list[JobRecord]) -> None:
    """Put runs into a hub's store before it starts."""
    state_dir.mkdir(parents=True, exist_ok=True)
    store = HubStore.open(state_dir / "hub.duckdb", SystemClock())
    upsert_jobs(store, records)
    store.close()


def jobs(name: str, count: int, state: str, *, user: str = USER, first: int = 1, gpus: int = 0) -> list[JobRecord]:
    """Return ended runs of one name."""
    tres = "cpu=1,mem=1G,node=1" + (f",gres/gpu={gpus}" if gpus else "")
    return [
        JobRecord(
            "gw", first + n, T0 + 100 * (first + n), printed_id=str(first + n), user=user, name=name, account="proj",
            partition="gpu", time_limit_s=3600, req_tres=tres, alloc_tres=tres, gpus=gpus, n_nodes=1, cpus=1,
            start=T0 + 100 * (first + n) + 5, end=T0 + 100 * (first + n) + 65, elapsed_s=60, state=state,
        )
        for n in range(count)
    ]  # fmt: skip


def job(name: str = "train", user: str = USER, **members: object) -> dict[str, object]:
    """Return what a plugin sends of a small batch job."""
    script = "#!/bin/sh\nsleep 1\n"
    return {
        "user_id": pwd.getpwnam(user).pw_uid, "name": name, "account": "proj", "partition": "gpu", "time_limit": 60,
        "min_nodes": 1, "min_cpus": 1, "num_tasks": 1, "script": script, "script_bytes": len(script),
        "script_hash": "00000000000000aa", **members,
    }  # fmt: skip
