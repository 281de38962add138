"""Questions: the hub first, slurmctld after a jitter, then with backoff; at most one question per run."""

import random
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpuwaste.agent.facts.remote import GONE, RunAnswer
from gpuwaste.agent.node_map import Questions
from gpuwaste.core.errors import NoDataError, RetryableWireError, SlurmError
from gpuwaste.ledger.gpu_sample import MapSource
from gpuwaste.slurm.clients.slurmctld_jobs import parse_jobs
from gpuwaste.slurm.formats.gpu_positions import GresOnNode
from gpuwaste.testing.clocks import FakeClock
from gpuwaste.testing.fake_slurm import FakeSlurm
from gpuwaste.testing.memory_hub import MemoryHub

HUB_JOB = {
    "job_id": 7,
    "start": 1000,
    "restarts": 0,
    "state": "RUNNING",
    "suspended": False,
    "nodes": {"gpu1": {"positions": [0, 2], "shards": 0}, "gpu2": {"positions": [1], "shards": 0}},
}
RECORD = """JobId=7 JobName=x
   UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A
   JobState={state} Reason=None Dependency=(null)
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   StartTime=2026-11-21T13:44:38 EndTime=2026-11-21T13:54:38 Deadline=N/A
   NodeList=gpu[1-2]
   NumNodes=2 NumCPUs=2
     Nodes=gpu1 CPU_IDs=2 Mem=500 GRES=gpu:a100:1(IDX:3)
     Nodes=gpu2 CPU_IDs=0 Mem=500 GRES=gpu:a100:1(IDX:0)
   MinCPUsNode=1 MinMemoryCPU=500M MinTmpDiskNode=0
   OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)
"""


@dataclass
class Bench:
    """A Questions with its surroundings."""

    hub: MemoryHub = field(default_factory=lambda: MemoryHub({"/v1/map": {"jobs": []}}))
    slurm: FakeSlurm = field(default_factory=FakeSlurm)
    clock: FakeClock = field(default_factory=lambda: FakeClock(0))

    def __post_init__(self) -> None:
        rng = random.Random(1)
        self.questions = Questions("gpu1", self.hub, self.slurm, self.clock, jitter_s=30, rng=rng)

    def run(self, seconds: float) -> list[RunAnswer]:
        """Do what is due in the next seconds."""
        until = self.clock.now_us + int(seconds * 1e6)
        while self.clock.now_us <= until:
            self.clock.advance(max(1e-6, self.questions.step()))
        return self.questions.answers()


def running(state: str = "RUNNING") -> list[Any]:
    """Return job 7 as slurmctld tells it."""
    return list(parse_jobs(RECORD.format(state=state)).jobs)


def test_the_hub_answers_and_slurmctld_is_not_asked() -> None:
    """In the normal case there is no question to slurmctld."""
    bench = Bench(MemoryHub({"/v1/map": {"jobs": [HUB_JOB]}}), FakeSlurm(running=running()))
    bench.questions.ask(7, 5)
    (answer,) = bench.run(100)
    assert (answer.source, answer.start, answer.positions) == (MapSource.HUB, 1000, frozenset({0, 2}))
    assert bench.hub.asked == [{"node": "gpu1", "job": "7"}]
    assert bench.questions.slurmctld_questions == 0


@pytest.mark.parametrize("trouble", [RetryableWireError("down"), NoDataError("unknown"), None])
def test_slurmctld_is_asked_once_after_the_jitter(trouble: Exception | None) -> None:
    """A hub that is away or does not know: one question to slurmctld, and the hub is asked again before it."""
    bench = Bench(MemoryHub({"/v1/map": trouble or {"jobs": []}}), FakeSlurm(running=running()))
    bench.questions.ask(7, 5)
    assert bench.questions.step() > 0
    assert bench.questions.slurmctld_questions == 0
    (answer,) = bench.run(60)
    assert (answer.source, answer.positions, answer.state) == (MapSource.SLURMCTLD, frozenset({3}), "RUNNING")
    assert (bench.questions.slurmctld_questions, len(bench.hub.asked)) == (1, 2)


def test_one_question_stands_per_run_and_an_answer_lasts_a_minute() -> None:
    """Asked at every tick, a run costs one question; another run of the same job is another question."""
    bench = Bench(MemoryHub({"/v1/map": {"jobs": [HUB_JOB]}}))
    for _ in range(10):
        bench.questions.ask(7, 5)
    bench.run(1)
    bench.questions.ask(7, 5)
    bench.run(1)
    assert len(bench.hub.asked) == 1
    bench.questions.ask(7, 6)
    bench.clock.advance(61)
    bench.questions.ask(7, 5)
    bench.run(1)
    assert len(bench.hub.asked) == 3


def test_a_slurmctld_that_is_away_is_asked_ever_more_rarely() -> None:
    """Two hours without anybody who answers: a dozen questions, not hundreds."""
    bench = Bench(
        MemoryHub({"/v1/map": RetryableWireError("down")}), FakeSlurm(failure="Unable to contact slurm controller")
    )
    bench.questions.ask(7, 5)
    assert not bench.run(7200)
    assert 8 <= bench.questions.slurmctld_questions <= 20
    assert "Unable to contact" in bench.questions.health


def test_the_queue_is_bounded() -> None:
    """A thousand questions stand at most; the rest is dropped and counted, and asked again at a later tick."""
    bench = Bench()
    for job in range(1, 1500):
        bench.questions.ask(job, 5)
    assert bench.questions.dropped == 499


def test_an_unknown_job_is_gone() -> None:
    """Slurmctld does not know it any more: an answer that ends the run."""
    bench = Bench()
    bench.questions.ask(7, 5)
    (answer,) = bench.run(60)
    assert (answer.state, answer.running) == (GONE, False)


def test_a_requeued_job_that_waits_is_no_answer() -> None:
    """The run was seen on this node, slurmctld says pending: ask again later."""
    bench = Bench(slurm=FakeSlurm(running=running("PENDING")))
    bench.questions.ask(7, 5)
    assert not bench.run(60)
    bench.slurm.running = running()
    (answer,) = bench.run(120)
    assert answer.running


def test_another_nodes_part_is_no_answer() -> None:
    """A job of several nodes has positions on each: only this node's count; a job elsewhere is another run."""
    job = running()[0]
    elsewhere = type(job)(
        **{name: getattr(job, name) for name in job.__slots__} | {"nodes": {"gpu9": GresOnNode((0,))}}
    )
    bench = Bench(slurm=FakeSlurm(running=[elsewhere]))
    bench.questions.ask(7, 5)
    assert not bench.run(60)


@pytest.mark.parametrize(
    "job",
    [
        None,
        [],
        {**HUB_JOB, "job_id": 8},
        {**HUB_JOB, "start": "1000"},
        {**HUB_JOB, "start": True},
        {**HUB_JOB, "state": None},
        {**HUB_JOB, "nodes": {"gpu2": {"positions": [0]}}},
        {**HUB_JOB, "nodes": {"gpu1": {"positions": [0, "x"]}}},
        {**HUB_JOB, "nodes": {"gpu1": {"positions": 3}}},
        {**HUB_JOB, "nodes": {"gpu1": {"positions": [-1]}}},
        {**HUB_JOB, "nodes": "gpu1"},
    ],
)
def test_what_is_no_answer_is_not_taken_for_one(job: object) -> None:
    """Wrong types, another job, another node: the run stays unknown."""
    bench = Bench(MemoryHub({"/v1/map": {"jobs": [job]}}))
    bench.questions.ask(7, 5)
    bench.questions.step()
    assert not bench.questions.answers()


def test_the_thread_starts_works_and_stops() -> None:
    """Asked from another thread, it answers and can be stopped; its chores are done."""
    done = threading.Event()

    class Now(FakeClock):
        def mono_us(self) -> int:
            return 0

    questions = Questions(
        "gpu1", MemoryHub({"/v1/map": {"jobs": [HUB_JOB]}}), None, Now(), jitter_s=0, chores=(done.set,)
    )
    questions.worker.start()
    questions.ask(7, 5)
    assert done.wait(10)
    deadline = threading.Event()
    found: list[RunAnswer] = []
    for _ in range(500):
        found += questions.answers()
        if found or deadline.wait(0.02):
            break
    questions.worker.stop()
    assert [answer.start for answer in found] == [1000]


def test_a_failing_slurm_is_a_reason_not_an_error() -> None:
    """SlurmError becomes the health text; the thread goes on."""

    class Broken:
        def job(self, job_id: int) -> list[Any]:
            raise SlurmError(f"job {job_id}: no")

    questions = Questions("gpu1", None, Broken(), FakeClock(0), jitter_s=0)
    questions.ask(7, 5)
    questions.step()
    assert questions.health == "slurmctld: job 7: no"
