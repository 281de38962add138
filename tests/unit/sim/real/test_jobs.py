"""What sbatch is given for each job of a history."""

import pytest

from gpuwaste.core.errors import NoDataError
from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.sim.real.real_jobs import TraceSubmission, submissions
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Partition

MODEL = ClusterModel(
    "t",
    (Node("n1", 8, 1 << 30, {"a100": 4}),),
    (Partition("gpu", ("n1",), default=True), Partition("old", ("n1",), state="DOWN")),
)


def job(number: int, tres: str, *, run: int = 100, limit: int | None = 90, partition: str = "gpu") -> JobRecord:
    return JobRecord(
        cluster="c",
        job_id=number,
        user="u",
        submit=number,
        start=number,
        end=number + run,
        elapsed_s=run,
        state="COMPLETED",
        time_limit_s=limit,
        partition=partition,
        req_tres=tres,
    )


def options(tres: str, **more: object) -> tuple[str, ...]:
    _, (found,), _ = submissions(table_of([job(1, tres, **more)]), MODEL)  # type: ignore[arg-type]
    return found.options


def test_a_job_that_hits_its_limit_is_ended_by_slurmctld() -> None:
    """Its limit is rounded up to minutes as sbatch does, and it would sleep on after it."""
    _, found, _ = submissions(table_of([job(5, "cpu=2,node=1,mem=4G")]), MODEL)
    assert found == [
        TraceSubmission(5, 5, 90 + 3600, 90, ("-t", "2", "--ntasks=2", "--nodes=1", "--mem=4096M", "-p", "gpu"))
    ]


def test_a_job_without_a_limit_names_none() -> None:
    """It runs what it ran, under the partition's limit."""
    _, (found,), _ = submissions(table_of([job(1, "cpu=1", limit=None, partition="gone")]), MODEL)
    assert (found.sleep_s, found.options) == (100, ("--ntasks=1",))


def test_gpus_by_node_where_they_divide() -> None:
    """Equal shares are asked for by node, others in all; a type is named where the job named it."""
    assert "--gres=gpu:a100:2" in options("cpu=4,node=2,gres/gpu=4,gres/gpu:a100=4")
    assert "--gpus=3" in options("cpu=4,node=2,gres/gpu=3")
    assert "--gpus=a100:1" in options("cpu=1,gres/gpu=1,gres/gpu:a100=1")


def test_jobs_that_cannot_be_submitted_are_counted() -> None:
    """An unknown type and a partition that is down are reasons; with nothing left it is an error."""
    jobs = [job(1, "cpu=1,gres/gpu=1,gres/gpu:h100=1"), job(2, "cpu=1", partition="old"), job(3, "cpu=1")]
    _, found, left_out = submissions(table_of(jobs), MODEL)
    assert [each.job_id for each in found] == [3]
    assert left_out == {"requests a GPU type that the cluster does not have": 1, "requests a partition that is down": 1}
    with pytest.raises(NoDataError, match="no job of the trace can be submitted"):
        submissions(table_of(jobs[:2]), MODEL)
