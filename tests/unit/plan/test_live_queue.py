"""A live cluster as the forward simulation takes it: pools, running and waiting jobs, and what requests find."""

from dataclasses import replace

import pytest
from tests.unit.plan.facts import NODES

from gpuwaste.core.errors import NoDataError
from gpuwaste.plan.live_queue import MAX_TASKS, LiveQueue, live_queue
from gpuwaste.plan.start_time.run_times import PastRuns
from gpuwaste.plan.start_time.start_expectation import expect
from gpuwaste.slurm.clients.slurmctld_jobs import RunningJob
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.slurm.site.site_fields import parse_nodes
from gpuwaste.slurm.submit.job_request import JobRequest

NOW = 1_800_000_000
NODE_LIST = parse_nodes(NODES)


def job(number: int, state: str = "PENDING", **fields: object) -> RunningJob:
    """Return a job of two GPUs in partition gpu with a limit of an hour."""
    found = RunningJob(
        job_id=number,
        printed_id=str(number),
        name="x",
        user="bob",
        uid=1002,
        account="proj1",
        partition="gpu",
        qos="normal",
        state=state,
        submit=NOW - 600,
        start=NOW - 1800 if state == "RUNNING" else None,
        end=None,
        restarts=0,
        node_list="gpu1" if state == "RUNNING" else "",
        n_nodes=1,
        nodes={"gpu1": GresOnNode(gpus=4)} if state == "RUNNING" else {},
        time_limit_s=3600,
        tres="cpu=1,mem=1G,node=1,gres/gpu=4" if state == "RUNNING" else "",
        req_tres="cpu=1,mem=1G,node=1,gres/gpu=2",
        priority=100,
    )
    return replace(found, **fields)  # type: ignore[arg-type]


def read(*jobs: RunningJob) -> LiveQueue:
    """Return the queue of the three nodes with these jobs."""
    return live_queue(jobs, NODE_LIST, "gpu", PastRuns(), NOW)


def request(**fields: object) -> JobRequest:
    """Return a request of four GPUs for an hour."""
    found = JobRequest(user="alice", submit=NOW, cpus=1, nodes=1, gpus=4, gpu_type="a100", time_limit_s=3600)
    return replace(found, **fields)  # type: ignore[arg-type]


def test_pools_are_nodes_of_the_same_partitions_and_type() -> None:
    """gpu1 and gpu2 are one pool of 8 GPUs, h1 another one of 4; a node that is down is in none."""
    assert [pool.gpus for pool in read().pools] == [8, 4]
    assert read().queue.machine.capacity[:, 2].tolist() == [4, 4, 4]
    down = [replace(node, state="DOWN*") if node.name == "gpu2" else node for node in NODE_LIST]
    assert [pool.gpus for pool in live_queue((), down, "gpu", PastRuns(), NOW).pools] == [4, 4]
    with pytest.raises(NoDataError, match="sinfo -R"):
        live_queue((), [replace(node, state="DRAINED") for node in NODE_LIST], "gpu", PastRuns(), NOW)


def test_a_request_finds_the_pools_of_its_partition_and_type() -> None:
    """No partition is the default one; a type that the partition lacks, and more than it has, is no data."""
    queue = read()
    assert queue.candidate(request()).pools == 1
    assert queue.candidate(request(partition="big", gpu_type="")).pools == 2
    assert queue.candidate(request(partition="big,gpu", gpu_type="")).pools == 3
    for odd in (request(gpu_type="h100"), request(gpus=9), request(partition="none"), request(nodes=3)):
        with pytest.raises(NoDataError):
            queue.candidate(odd)


def test_those_that_wait_are_in_the_order_of_priority() -> None:
    """By priority, then by submission; a held job, one with a dependency and one too large do not wait."""
    jobs = [
        job(1, priority=5),
        job(2, priority=9),
        job(3, priority=0),
        job(4, reason="Dependency"),
        job(5, req_tres="cpu=1,gres/gpu=99"),
        job(6, priority=9, submit=NOW - 900),
    ]
    assert read(*jobs).ids == (6, 2, 1)


def test_an_array_is_its_tasks() -> None:
    """One record that stands for a hundred tasks is a hundred jobs, one for a million is bounded."""
    assert len(read(job(1, printed_id="1_[0-99]")).ids) == 100
    assert len(read(job(1, printed_id="1_[0-999999]")).ids) == MAX_TASKS


def test_a_free_machine_starts_at_once_and_a_full_one_later() -> None:
    """Four GPUs are free: at once. Both nodes full for at most half an hour more: later, within what is left."""
    free = read(job(1, "RUNNING"))
    (now,) = expect(free.queue, [free.candidate(request())], 20)
    assert now is not None
    assert (now.p10, now.p90) == (NOW, NOW)
    full = read(job(1, "RUNNING"), job(2, "RUNNING", node_list="gpu2", nodes={"gpu2": GresOnNode(gpus=4)}))
    (later,) = expect(full.queue, [full.candidate(request())], 20)
    assert later is not None
    assert NOW < later.p50 <= NOW + 1800


def test_a_job_that_waits_is_asked_about_at_its_place() -> None:
    """Taken out of the queue, at its place among the others; one that runs has no place."""
    queue = read(job(1, priority=5), job(2, priority=9), job(7, "RUNNING"))
    found = queue.without(1)
    assert found is not None
    rest, place = found
    assert (rest.ids, place, len(rest.queue.waiting.limit_s)) == ((2,), 1, 1)
    assert queue.without(7) is None


def test_what_slurm_cannot_tell_is_no_error() -> None:
    """No TRES, no start, no limit, no node that is known: the job counts for what is known of it."""
    odd = [
        job(1, "RUNNING", tres="odd", start=None, time_limit_s=None),
        job(2, "RUNNING", node_list="gone", nodes={}),
        job(3, req_tres="odd"),
        job(4, submit=None, priority=None),
    ]
    queue = read(*odd).queue
    assert queue.holdings is not None
    assert (queue.holdings.job.tolist(), queue.holdings.node.tolist()) == ([0], [0])
    assert len(queue.running.limit_s) == 2, "what is not known to hold a node counts for limits"
