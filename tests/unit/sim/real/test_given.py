"""The Slurm model at the instants of a run."""

from dataclasses import replace

import pytest

from gpuwaste.core.errors import UsageError
from gpuwaste.jobs.history.job_table import table_of
from gpuwaste.sim.real.instants import BACKFILL, ENDED, FREED, MAIN, STARTED, SUBMITTED, TESTED, ControllerInstant
from gpuwaste.sim.real.replayed_instants import starts_at
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import ClusterModel, Node, Outage, Partition

MODEL = ClusterModel("small", (Node("n1", 1, 1),), (Partition("p", ("n1",), default=True),))


def jobs(count: int, *, large: int = 0) -> list[JobRecord]:
    """Return jobs of a minute and a limit of two, which take the only node one after another; `large` never fits."""
    return [
        JobRecord(
            cluster="c",
            job_id=number,
            user="u",
            submit=number,
            start=number,
            end=number + 60,
            elapsed_s=60,
            state="COMPLETED",
            time_limit_s=120,
            partition="p",
            req_tres=f"cpu={9 if number == large else 1},node=1",
        )
        for number in range(1, count + 1)
    ]


def played(*instants: ControllerInstant, model: ClusterModel = MODEL) -> list[int | None]:
    """Return the starts of two jobs."""
    return starts_at(instants, table_of(jobs(2)), model)


BEGIN = (
    ControllerInstant(1000, SUBMITTED, 0),
    ControllerInstant(1100, MAIN),
    ControllerInstant(1150, STARTED, 0),
    ControllerInstant(2000, SUBMITTED, 1),
)


@pytest.mark.parametrize(("freed", "start"), [(61_499, 61), (61_500, 61), (61_501, 64)])
def test_a_pass_sees_a_job_that_freed_its_node_a_millisecond_before(freed: int, start: int) -> None:
    """A node that is free a millisecond before a pass, or at it, is used by it; one that is free later waits."""
    passes = (ControllerInstant(61_500, MAIN), ControllerInstant(64_000, MAIN))
    assert played(*BEGIN, *sorted([ControllerInstant(freed, FREED, 0), *passes], key=lambda each: each.ms)) == [
        1,
        start,
    ]


def test_the_model_starts_what_fits_and_not_what_the_run_started() -> None:
    """A start of the run while the node is held by another job is no start of the model."""
    assert played(*BEGIN, ControllerInstant(3000, MAIN), ControllerInstant(3001, STARTED, 1)) == [1, None]


def test_a_cycle_comes_to_a_job_when_the_run_did() -> None:
    """A job that a cycle tested 2 s after it began starts at that second."""
    cycle = (
        ControllerInstant(70_000, BACKFILL),
        ControllerInstant(72_010, TESTED, 1),
        ControllerInstant(72_020, STARTED, 1),
    )
    assert played(*BEGIN, ControllerInstant(61_000, FREED, 0), *cycle) == [1, 72]


def test_a_cycle_goes_on_after_a_pass_of_the_main_loop() -> None:
    """A job that a cycle tested after it had let a pass of the main loop through starts at that second."""
    cycle = (
        ControllerInstant(70_000, BACKFILL),
        ControllerInstant(71_000, MAIN),
        ControllerInstant(75_010, TESTED, 1),
        ControllerInstant(75_020, STARTED, 1),
    )
    assert played(*BEGIN, ControllerInstant(61_000, FREED, 0), *cycle) == [1, 75]


def test_a_job_that_does_not_fit_keeps_its_place() -> None:
    """A job that slurmctld refused, because no node is large enough, is one without a start among the others."""
    given = [ControllerInstant(1000, SUBMITTED, 1), ControllerInstant(1100, MAIN), ControllerInstant(1150, STARTED, 1)]
    assert starts_at(given, table_of(jobs(2, large=1)), MODEL) == [None, 1]


@pytest.mark.parametrize(("ended", "start"), [(61_000, 65), (69_000, 71)])
def test_nodes_of_a_completing_job_are_reserved_and_not_started_on(ended: int, start: int) -> None:
    """Two nodes complete: the job that waits for two reserves these, so the third is free for the job behind it.

    While their jobs run it has to reserve the third one, too, and the job behind it would be in the way.
    """
    nodes = tuple(Node(f"n{number}", 1, 1) for number in (1, 2, 3))
    model = ClusterModel("three", nodes, (Partition("p", ("n1", "n2", "n3"), default=True),))
    first, second, wide, last = jobs(4)
    table = table_of([first, replace(second, time_limit_s=1200), replace(wide, req_tres="cpu=2,node=2"), last])
    given = [
        *(ControllerInstant(1000 + row, SUBMITTED, row) for row in (0, 1)),
        ControllerInstant(1100, MAIN),
        *(ControllerInstant(1110 + row, STARTED, row) for row in (0, 1)),
        *(ControllerInstant(2000 + row, SUBMITTED, row) for row in (2, 3)),
        *(ControllerInstant(ended, ENDED, row) for row in (0, 1)),
        ControllerInstant(65_000, BACKFILL),
        ControllerInstant(65_001, TESTED, 2),
        ControllerInstant(65_002, TESTED, 3),
        *(ControllerInstant(70_000, FREED, row) for row in (0, 1)),
        ControllerInstant(71_000, MAIN),
    ]
    given.sort(key=lambda each: each.ms)
    assert starts_at(given, table, model) == [1, 1, 71, start]


def test_what_the_model_does_not_play_is_refused() -> None:
    """Clusters with outages, and instants of more jobs than the trace has, are an error that says so."""
    with pytest.raises(UsageError, match="can be requeued"):
        played(model=ClusterModel("out", MODEL.nodes, MODEL.partitions, outages=(Outage("n1", 1, 2),)))
    with pytest.raises(UsageError, match="row 2"):
        played(ControllerInstant(1000, SUBMITTED, 2))
