"""The Slurm model beside the slurmctld that is installed: at the instants of a run it starts the same jobs."""

from pathlib import Path

import numpy as np
import pytest

from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.sim.real.engine import EngineStudy, instants_path, play_ensemble
from gpuwaste.sim.real.instants import read_instants_csv
from gpuwaste.sim.real.real_jobs import read_csv
from gpuwaste.sim.real.replayed_instants import starts_at
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition
from gpuwaste.testing import cluster_host

pytestmark = [pytest.mark.cluster, pytest.mark.sockets]
T0, NODES, GPUS, JOBS, SPEED = 1_000_000, 6, 4, 40, 50
TYPES = ("a100", "v100")
NEAR_S = 5
SAME_SHARE = 0.97


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    """Skip where Slurm, as the other clusters need it, or faketime is missing."""
    reason = cluster_host.missing()
    if reason:
        pytest.skip(reason)


def model() -> ClusterModel:
    """Return a few nodes with GPUs of two types."""
    nodes = tuple(Node(f"g{n}", GPUS, 8 << 30, {TYPES[n % 2]: GPUS}) for n in range(NODES))
    settings = {"SelectTypeParameters": "CR_CPU", "SchedulerParameters": "bf_interval=30,bf_continue"}
    names = tuple(node.name for node in nodes)
    return ClusterModel("few", nodes, (Partition("gpu", names, default=True),), settings=settings)


def drawn(number: int, rng: np.random.Generator) -> JobRecord:
    """Return a job of 1 to 8 GPUs, some of one type, with a limit of up to five times its run."""
    gpus, run, submit = int(rng.choice([1, 2, 4, 8])), int(rng.integers(40, 240)), T0 + int(rng.integers(0, 400))
    typed = f",gres/gpu:{TYPES[number % 2]}={gpus}" if rng.random() < 0.5 else ""
    return JobRecord(
        cluster="c",
        job_id=number,
        user="u",
        submit=submit,
        start=submit,
        end=submit + run,
        elapsed_s=run,
        state="COMPLETED",
        time_limit_s=60 * -(-int(run * rng.uniform(1.3, 5)) // 60),
        partition="gpu",
        req_tres=f"cpu={gpus},node={-(-gpus // GPUS)},gres/gpu={gpus}{typed}",
    )


def test_the_model_starts_the_same_jobs_at_the_same_passes(tmp_path: Path) -> None:
    """With a run's passes and holding times given, 97 of 100 jobs of a full cluster start within 5 s of the run."""
    rng = np.random.default_rng(3)
    table, cluster = table_of([drawn(number, rng) for number in range(1, JOBS + 1)]), model()
    document = play_ensemble(EngineStudy(table, "drawn", cluster, 1, SPEED, tmp_path))
    run, instants = read_csv(tmp_path / "run-001.csv"), read_instants_csv(instants_path(tmp_path, 1))
    assert document.runs[0].states == {"COMPLETED": JOBS}
    pairs = list(zip(run, starts_at(instants, table, cluster), strict=True))
    waited = [each for each, _ in pairs if (each.ended.start or 0) - (each.ended.submitted or 0) > 2 * NEAR_S]
    same = [abs((each.ended.start or 0) - start) <= NEAR_S for each, start in pairs if start is not None]
    assert len(waited) > JOBS / 3
    assert sum(same) >= SAME_SHARE * JOBS, [(each, start) for each, start in pairs if start != each.ended.start]
