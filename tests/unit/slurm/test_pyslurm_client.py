"""The pyslurm adapter on the recorded objects of 25.11: it reads what is there, and tells it right."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwaste.core.errors import SlurmError
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.accounting.sacct_rows import BadRow
from gpuwaste.slurm.clients import pyslurm_client
from gpuwaste.slurm.clients.pyslurm_client import PyslurmClient
from gpuwaste.testing.fake_slurm import FakeSlurm

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "own_recordings"


def recording(name: str) -> Any:
    return json.loads((RECORDINGS / f"pyslurm_25.11.2_{name}.json").read_bytes())


@dataclass
class Watched:
    """An object with values by name; notes what is read of it."""

    values: dict[str, Any]
    read: set[str] = field(default_factory=set)

    def __getattr__(self, name: str) -> Any:
        self.read.add(name)
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None


@dataclass
class Replay:
    """The binding, from memory."""

    runs: Iterable[Any] = ()
    live: Iterable[Any] = ()
    windows: list[tuple[int, int, str]] = field(default_factory=list)
    tells_gpus: bool = True

    def accounting(self, start: int, end: int, cluster: str) -> Iterable[Any]:
        self.windows.append((start, end, cluster))
        return self.runs

    def jobs(self, job_id: int) -> Iterable[Any]:
        return [job for job in self.live if job.id == job_id]


def run_of(**changes: Any) -> Watched:
    """Return a pyslurm.db.Job as its documentation describes it: times in seconds, limits in minutes, memory in MiB."""
    tres = SimpleNamespace(cpu=4, mem=2000, node=1, billing=4, energy=None, gres={"gpu": SimpleNamespace(count=2)})
    typed = SimpleNamespace(**vars(tres) | {"gres": {"gpu": SimpleNamespace(count=2), "gpu:a100": 2}})
    values = {
        "id": 7, "cluster": "gw", "submit_time": 1000, "start_time": 1010, "end_time": 1100, "elapsed_time": 90,
        "name": "train", "user_name": "alice", "user_id": 1001, "account": "proj1", "group_name": lambda: "alice",
        "partition": "gpu", "qos": "normal", "time_limit": 10, "requested_tres": tres, "allocated_tres": typed,
        "submit_command": "sbatch a.sh", "requeue_count": 1, "nodelist": "gpu1", "num_nodes": 1, "cpus": 4,
        "memory": 2000, "state": "FAILED", "exit_code": 3, "exit_code_signal": 0, "steps": {"batch": None, 0: None},
        "stats": SimpleNamespace(total_cpu_time=12, resident_memory=5), "array_id": None, "array_task_id": None,
        "array_tasks_waiting": None, "heterogeneous_id": None, "heterogeneous_offset": None,
    }  # fmt: skip
    return Watched(values | changes)


def read(*runs: Any) -> list[JobRecord | BadRow]:
    return list(PyslurmClient(FakeSlurm(), Replay(runs)).accounting(0, 2000))


def test_every_attribute_that_is_read_exists() -> None:
    """Of pyslurm.db.Job, its statistics, and pyslurm.Job, as 25.11 has them."""
    api = recording("api")
    run, live = run_of(), Watched(recording("job"))
    read(run)
    pyslurm_client.request(live)
    assert len(run.read) > 25
    assert run.read <= set(api["pyslurm.db.job.Job"])
    assert len(live.read) > 10
    assert live.read <= set(api["pyslurm.core.job.job.Job"])
    assert "total_cpu_time" in api["pyslurm.db.stats.JobStatistics"]
    assert {"start_time", "end_time", "clusters"} <= set(api["pyslurm.db.job.JobFilter"])
    assert {"load", "values"} <= set(api["pyslurm.db.job.Jobs"])


def test_the_recorded_job_becomes_a_request() -> None:
    """A job that ran with two GPUs: limit in minutes, memory in MiB, GPUs by node."""
    client = PyslurmClient(FakeSlurm(), Replay(live=[SimpleNamespace(**recording("job"))]))
    (request,) = client.request(2)
    assert (request.user, request.submit, request.partition, request.name) == ("alice", 1795260062, "gpu", "wrap")
    assert (request.time_limit_s, request.mem_b, request.cpus, request.nodes) == (600, 100 * 1024**2, 1, 1)
    assert (request.gpus, request.is_array, request.interactive, request.account) == (2, False, False, "")
    assert client.request(3) == []


def test_a_run_of_accounting() -> None:
    """Lists of TRES are printed as sacct prints them; peak memory and suspension are unknown, not guessed."""
    (run,) = read(run_of())
    assert isinstance(run, JobRecord)
    assert (run.req_tres, run.alloc_tres) == (
        "billing=4,cpu=4,gres/gpu=2,mem=2000M,node=1",
        "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=2000M,node=1",
    )
    assert (run.gpus, run.gpu_type, run.group, run.restarts, run.time_limit_s) == (2, "a100", "alice", 1, 600)
    assert (run.state, run.exit_code, run.total_cpu_s, run.max_rss_b) == ("FAILED", 3, 12.0, None)
    assert (run.elapsed_s, run.mem_req_b, run.interactive, run.suspended_s) == (90, 2000 * 1024**2, False, 0)


def test_the_verdict_is_read_from_the_administrators_comment() -> None:
    """The token beside other text, and none where there is no comment."""
    found = read(run_of(admin_comment="ops;gw=0123456789abcdef"), run_of(admin_comment=None))
    assert [run.verdict_id for run in found if isinstance(run, JobRecord)] == ["0123456789abcdef", ""]


@pytest.mark.parametrize(
    ("changes", "printed"),
    [
        ({"array_id": 3, "array_task_id": 2}, "3_2"),
        ({"array_id": 3, "array_tasks_waiting": "0-4"}, "3_[0-4]"),
        ({"heterogeneous_id": 4, "heterogeneous_offset": 1}, "4+1"),
        ({"heterogeneous_id": 4}, "4+0"),
        ({}, "7"),
    ],
)
def test_the_ids_of_arrays_and_het_jobs(changes: dict[str, Any], printed: str) -> None:
    """As Slurm's commands print them."""
    (run,) = read(run_of(**changes))
    assert isinstance(run, JobRecord)
    assert run.printed_id == printed


def test_what_is_missing_is_unknown_and_what_is_wrong_is_set_aside() -> None:
    """A job without values stays a job; one without an id or with words for numbers is told with its place."""
    empty = dict.fromkeys(run_of().values) | {"id": 7, "submit_time": 1000}
    good, unlimited, nameless, wrong = read(
        Watched(empty), run_of(time_limit="UNLIMITED"), run_of(id=None), run_of(cpus="four")
    )
    assert isinstance(good, JobRecord)
    assert (good.user, good.start, good.elapsed_s, good.gpus, good.state) == ("", None, None, 0, "")
    assert isinstance(unlimited, JobRecord)
    assert unlimited.time_limit_s is None
    assert nameless == BadRow(3, "id or submit_time is missing", "job None")
    assert isinstance(wrong, BadRow)
    assert (wrong.line, wrong.reason) == (4, "cpus: expected a number, found 'four'")


def test_pyslurm_s_own_errors_are_ours() -> None:
    """Its classes cannot be named without an import; the text and what to try are kept."""

    class Broken(Replay):
        def accounting(self, *_: object) -> Iterable[Any]:
            raise RuntimeError("Unable to connect to slurmdbd")

    with pytest.raises(SlurmError, match="pyslurm: RuntimeError: Unable to connect to slurmdbd: do Slurm's commands"):
        list(PyslurmClient(FakeSlurm(), Broken()).accounting(0, 1))


def test_accounting_without_gpus_is_not_read() -> None:
    """The pyslurm of Slurm 22.05 tells no TRES: the commands are asked for runs instead."""
    told = JobRecord("gw", 7, 1000, gpus=2)
    binding = Replay([run_of()], tells_gpus=False)
    assert list(PyslurmClient(FakeSlurm(records=[told]), binding).accounting(0, 2000)) == [told]
    assert binding.windows == []


def test_the_gpus_of_a_request_are_read_with_and_without_the_prefix_of_gres() -> None:
    """As 22.05 and 25.11 name them."""
    job = recording("job")
    for names in ({"gpu": 2}, {"gres/gpu": 2}, {"gpu:a100": 2}):
        request = pyslurm_client.request(SimpleNamespace(**job | {"gres_per_node": names}))
        assert request.gpus == 2


def test_the_window_and_the_cluster_are_asked_for() -> None:
    """The rest of the protocol is the commands'."""
    binding = Replay()
    client = PyslurmClient(FakeSlurm(cluster="site"), binding)
    assert list(client.accounting(5, 9)) == []
    assert binding.windows == [(5, 9, "site")]
    assert client.config() == client.commands.config()
