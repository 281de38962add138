"""DeviceMap on real sockets and files in a private directory: who holds what, and when nobody is believed."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpuwaste.agent.device_map import DeviceMap
from gpuwaste.agent.facts.gpu_identities import PositionTable
from gpuwaste.agent.facts.prolog_files import PrologSource
from gpuwaste.agent.facts.remote import GONE, RunAnswer
from gpuwaste.agent.facts.run_facts import Facts, FactSource, LocalRun, MinorFacts, PositionFacts
from gpuwaste.agent.node_runs import RunTracker
from gpuwaste.agent.readings import GpuAllocation, GpuIdentity, JobMap
from gpuwaste.agent.step_daemons import BATCH_STEP, EXTERN_STEP
from gpuwaste.core.errors import SlurmError
from gpuwaste.ledger.gpu_sample import Confidence, MapSource
from gpuwaste.slurm.formats.gpu_positions import DevicePosition
from gpuwaste.slurm.run_key import RunKey
from gpuwaste.testing.cluster_process import wait_until

pytestmark = pytest.mark.sockets

T0 = 2_000_000_000  # UTC seconds, after this machine's boot
ORDER = (3, 1, 0, 2)  # minors in gres.conf order
GPUS = tuple(GpuIdentity(f"GPU-{minor}", minor, minor) for minor in range(4))


@dataclass
class Asked:
    """A Questioner that notes the questions and answers what a test puts in."""

    asked: list[tuple[int, int]] = field(default_factory=list)
    ready: list[RunAnswer] = field(default_factory=list)

    def ask(self, job_id: int, since_us: int) -> None:
        """Note the question."""
        self.asked.append((job_id, since_us))

    def answers(self) -> list[RunAnswer]:
        """Hand out what is ready."""
        ready, self.ready = self.ready, []
        return ready


class Fixed:
    """A source that says the same for a job, whatever its run."""

    def __init__(self, name: MapSource, **said: Facts) -> None:
        self.name = name
        self.health = ""
        self._said = said

    def facts(self, run: LocalRun) -> Facts | None:
        """Return what was given for the job."""
        return self._said.get(f"job{run.job_id}")


class NodeDir:
    """A node's spool and jobs directories, with real sockets, and its device map."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.spool, self.jobs = path / "spool", path / "jobs"
        self.spool.mkdir()
        self.jobs.mkdir()
        self.questions = Asked()
        self.devices = [DevicePosition(at, (f"/dev/nvidia{minor}",), minor=minor) for at, minor in enumerate(ORDER)]
        self.table = PositionTable(lambda: self.devices)
        self.table.check()
        self._listening: dict[str, socket.socket] = {}
        self.map = self.start_map()
        self.update(0)

    def new_map(self, *sources: FactSource, gpus: tuple[GpuIdentity, ...] = GPUS) -> None:
        """Make a device map that has seen an empty node once."""
        self.start_map(*sources)
        self.update(0, gpus=gpus)

    def start_map(self, *sources: FactSource) -> DeviceMap:
        """Return a device map, as after a start of the agent."""
        prolog = PrologSource(self.jobs)
        tracker = RunTracker("gpu1", self.spool, prolog)
        every = {"tracker": tracker, "positions": self.table, "questions": self.questions}
        self.map = DeviceMap("gpu1", "gw", sources=(prolog, *sources), **every)  # type: ignore[arg-type]
        return self.map

    def step(self, job: int, step: int, at: float) -> None:
        """Let a slurmstepd listen."""
        self.listen(f"gpu1_{job}.{step}", at)

    def listen(self, name: str, at: float) -> None:
        """Let a slurmstepd listen on a socket of that name."""
        self._listening[name] = socket.socket(socket.AF_UNIX)
        self._listening[name].bind(str(self.spool / name))
        self._listening[name].listen()
        os.utime(self.spool / name, (T0 + at, T0 + at))

    def end_step(self, job: int, step: int, *, killed: bool = False) -> None:
        """Let a slurmstepd end; one that is killed leaves its socket."""
        self._listening.pop(f"gpu1_{job}.{step}").close()
        path = self.spool / f"gpu1_{job}.{step}"
        if not killed:
            path.unlink()
            return
        # A child that another thread forks at this moment holds the socket until it runs its program.
        wait_until(lambda: str(path) not in Path("/proc/net/unix").read_text(), 60, f"{path} to be closed")

    def file(self, name: str, at: float, **fields: object) -> None:
        """Leave a prolog's or epilog's file."""
        path = self.jobs / name
        path.unlink(missing_ok=True)
        path.write_text("".join(f"{key}={value}\n" for key, value in fields.items()), encoding="ascii")
        os.utime(path, (T0 + at, T0 + at))

    def update(
        self,
        at: float,
        pids: dict[str, frozenset[int] | None] | None = None,
        host_pids: dict[int, frozenset[int]] | None = None,
        gpus: tuple[GpuIdentity, ...] = GPUS,
        suspended: frozenset[int] = frozenset(),
    ) -> JobMap:
        """Update the map at T0 + `at`."""
        return self.map.update(us(at), gpus, pids or {}, host_pids or {}, suspended)

    def close(self) -> None:
        """Close what listens."""
        for item in self._listening.values():
            item.close()


def us(at: float) -> int:
    """T0 + seconds, as microseconds."""
    return int((T0 + at) * 1_000_000)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeDir]:
    directory = NodeDir(tmp_path)
    yield directory
    directory.close()


def short(job_map: JobMap) -> set[tuple[int, str, str, str]]:
    """Return (job, GPU, source, confidence) of each holding."""
    return {(item.job_id, item.gpu_uuid, item.map_source.value, item.confidence.value) for item in job_map.holdings}


def only(job_map: JobMap) -> GpuAllocation:
    """Return the one holding."""
    (found,) = job_map.holdings
    return found


def answer(job: int, since: float, state: str = "RUNNING", **more: object) -> RunAnswer:
    """Return the hub's answer about a run."""
    values: dict[str, object] = {"start": T0 + int(since), "positions": frozenset({0}), "gpus": 1, **more}
    return RunAnswer(job, us(since), values.pop("source", MapSource.HUB), state, **values)  # type: ignore[arg-type]


def test_positions_go_through_the_nodes_list_to_the_minor(node: NodeDir) -> None:
    """SLURM_JOB_GPUS counts rows of slurmd -G: position 0 of the order 3,1,0,2 is the GPU of minor 3."""
    node.file("7.start", 1, gpus="0,3")
    node.step(7, BATCH_STEP, 1.2)
    found = node.update(5)
    assert short(found) == {(7, "GPU-3", "prolog", "single"), (7, "GPU-2", "prolog", "single")}
    assert {item.since_us for item in found.holdings} == {us(1)}


def test_two_sources_that_agree_confirm(node: NodeDir) -> None:
    """A second source, or a process of the job on the GPU, makes the attribution confirmed."""
    node.new_map(Fixed(MapSource.CGROUP, job7=MinorFacts(frozenset({3}))))
    node.file("7.start", 1, gpus="0")
    node.file("8.start", 1, gpus="1")
    found = node.update(5, {"GPU-1": frozenset({80})}, {8: frozenset({80})})
    assert short(found) == {(7, "GPU-3", "prolog", "confirmed"), (8, "GPU-1", "prolog", "confirmed")}


def test_sources_that_disagree_are_a_conflict(node: NodeDir) -> None:
    """The GPU that only one of them names is nobody's, and so is another job's holding of it."""
    node.new_map(Fixed(MapSource.CGROUP, job7=PositionFacts(frozenset({0, 1}))))
    node.file("7.start", 1, gpus="0,2")
    node.file("8.start", 1, gpus="1")
    found = node.update(5)
    assert short(found) == {
        (7, "GPU-3", "prolog", "confirmed"),
        (7, "GPU-0", "prolog", "conflict"),
        (8, "GPU-1", "prolog", "conflict"),
    }
    assert found.unmapped == {"GPU-1": "conflict"}


def test_a_process_on_a_foreign_gpu_is_a_conflict(node: NodeDir) -> None:
    """Neither the GPU's own holder nor the stray's untouched GPU is believed; what the stray uses itself is its own."""
    node.file("7.start", 1, gpus="0,2")
    node.file("8.start", 1, gpus="1")
    pids = {"GPU-3": frozenset({70}), "GPU-1": frozenset({71, 80}), "GPU-0": frozenset[int](), "GPU-2": None}
    found = node.update(5, pids, {7: frozenset({70, 71}), 8: frozenset({80})})
    assert short(found) == {
        (7, "GPU-3", "prolog", "confirmed"),
        (7, "GPU-0", "prolog", "conflict"),
        (8, "GPU-1", "prolog", "conflict"),
    }
    later = node.update(15, {}, {})
    assert (7, "GPU-0", "prolog", "conflict") in short(later), "once astray, an untouched GPU stays in doubt"
    assert (8, "GPU-1", "prolog", "confirmed") in short(later)


def test_processes_of_no_job_are_no_evidence(node: NodeDir) -> None:
    """A prolog's health check or a monitoring daemon on a job's GPU changes nothing."""
    node.file("7.start", 1, gpus="0")
    assert short(node.update(5, {"GPU-3": frozenset({999})}, {7: frozenset({70})})) == {
        (7, "GPU-3", "prolog", "single")
    }


def test_two_jobs_on_one_whole_gpu_are_a_conflict(node: NodeDir) -> None:
    """Both claim it, neither gets it."""
    node.file("7.start", 1, gpus="0")
    node.file("8.start", 2, gpus="0")
    assert {item.confidence for item in node.update(5).holdings} == {Confidence.CONFLICT}


def test_shards_may_share_a_gpu(node: NodeDir) -> None:
    """Holders of parts have their share; until the part is known there is no run key, so no row leaves."""
    node.devices = [DevicePosition(0, ("/dev/nvidia3",), minor=3, shards=4)]
    node.table = PositionTable(lambda: node.devices)
    node.table.check()
    cgroup = Fixed(
        MapSource.CGROUP, job7=PositionFacts(frozenset({0}), shards=1), job8=PositionFacts(frozenset({0}), 2)
    )
    node.new_map(cgroup)
    for job in (7, 8, 9):
        node.file(f"{job}.start", 1, gpus="0", start=T0)
    found = {item.job_id: item for item in node.update(5).holdings}
    assert {job: item.share for job, item in found.items() if item.run_key} == {7: 0.25, 8: 0.5}
    assert found[9].run_key is None
    assert not any(item.confidence is Confidence.CONFLICT for item in found.values())
    assert node.questions.asked == [(9, us(1))]


def test_the_last_socket_ends_a_run_without_epilog(node: NodeDir) -> None:
    """Its end is the tick at which it is gone; with an epilog's file, that file's time."""
    node.step(7, BATCH_STEP, 1)
    node.step(8, EXTERN_STEP, 1)
    node.file("8.start", 0.5, gpus="0")
    node.update(5)
    node.end_step(7, BATCH_STEP)
    node.end_step(8, EXTERN_STEP)
    node.file("8.end", 12.5)
    assert dict(node.update(15).ended) == {7: us(15), 8: us(12.5)}
    assert not node.update(25).ended


def test_a_killed_stepd_leaves_a_socket_that_is_not_believed(node: NodeDir) -> None:
    """Nobody listens on it: the run is over."""
    node.step(7, BATCH_STEP, 1)
    node.update(5)
    node.end_step(7, BATCH_STEP, killed=True)
    assert dict(node.update(70).ended) == {7: us(70)}


def test_a_user_s_socket_of_a_step_s_name_keeps_no_run_alive(node: NodeDir) -> None:
    """Sockets of that name in the user's own directory, abstract, or with a line of /proc/net/unix in their path."""
    node.step(7, BATCH_STEP, 1)
    node.update(5)
    node.end_step(7, BATCH_STEP, killed=True)
    name, linked = f"gpu1_7.{BATCH_STEP}", node.path / "mine"
    linked.mkdir()
    forged = (str(linked / name), f"\0{node.spool / name}", f"\0x\n0: 2 0 0 1 1 9 {node.spool / name}")
    with ExitStack() as kept:
        for address in forged:
            listener = kept.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        linked.rename(node.path / "moved")
        linked.symlink_to(node.spool)
        assert dict(node.update(70).ended) == {7: us(70)}


def test_a_step_of_a_het_job_keeps_its_run_alive(node: NodeDir) -> None:
    """The sockets of its components have a third number; those of one step are one step, from the first on."""
    for component, at in ((1, 3), (0, 1)):
        name = f"gpu1_7.0.{component}"
        node.listen(name, at)
    tracker = RunTracker("gpu1", node.spool, PrologSource(node.jobs))
    for at in (5, 70, 140):
        assert tracker.update(us(at), {}) == []
        assert tracker.runs[7].steps == {0: us(1)}


def test_a_run_without_any_step_stands_by_its_prolog(node: NodeDir) -> None:
    """The second node of a job that runs nothing there holds its GPU from prolog to epilog, untouched."""
    node.file("7.start", 1, gpus="0")
    for at in (5, 1000, 100_000):
        assert short(node.update(at)) == {(7, "GPU-3", "prolog", "single")}
    node.file("7.end", 100_001)
    found = node.update(100_010)
    assert (found.holdings, found.ended) == ((), ((7, us(100_001)),))


def test_salloc_without_prolog_is_not_believed_between_steps(node: NodeDir) -> None:
    """Between two steps nothing local tells that it stands: no holding; a new step, or its end told, settles it."""
    node.new_map(Fixed(MapSource.CGROUP, job7=PositionFacts(frozenset({0}))))
    node.step(7, 0, 1)
    node.update(5)
    node.end_step(7, 0)
    assert node.update(15).holdings == ()
    node.questions.ready = [answer(7, 1, start=T0 + 1)]
    found = node.update(25)
    assert (found.holdings, found.ended) == ((), ())
    node.step(7, 1, 26)
    assert only(node.update(27)).run_key == RunKey("gw", 7, T0 + 1)
    node.end_step(7, 1)
    assert node.update(30).holdings == ()
    node.questions.ready = [answer(7, 1, "COMPLETED", positions=frozenset(), end=T0 + 28)]
    found = node.update(35)
    assert (found.holdings, found.ended) == ((), ((7, us(28)),))


def test_a_requeued_job_is_another_run(node: NodeDir) -> None:
    """The same id with a newer prolog: the first run ended with its epilog, the second began with its prolog."""
    node.file("7.start", 1, gpus="0", restarts=0)
    node.step(7, BATCH_STEP, 1.1)
    node.update(5)
    node.end_step(7, BATCH_STEP)
    node.file("7.end", 6)
    node.file("7.start", 13, gpus="1", restarts=1)
    node.step(7, BATCH_STEP, 13.1)
    found = node.update(15)
    assert (found.ended, short(found)) == (((7, us(6)),), {(7, "GPU-1", "prolog", "single")})
    assert only(found).since_us == us(13)
    node.questions.ready = [
        answer(7, 13, start=T0 + 1, restarts=0),  # a hub that did not hear of the requeue yet
    ]
    assert only(node.update(25)).run_key is None
    node.questions.ready = [answer(7, 13, restarts=1, positions=frozenset({1}))]
    assert only(node.update(35)).run_key == RunKey("gw", 7, T0 + 13)


def test_a_requeue_without_prolog_is_seen_by_its_new_socket(node: NodeDir) -> None:
    """The batch step's socket has another time: another run, which is asked about anew."""
    node.step(7, BATCH_STEP, 1)
    node.update(5)
    node.end_step(7, BATCH_STEP)
    node.step(7, BATCH_STEP, 12)
    assert node.update(15).ended == ((7, us(5)),)
    assert node.questions.asked[-1] == (7, us(12))
    node.questions.ready = [answer(7, 12, start=T0 + 1)]
    assert not node.update(25).holdings, "that start is the first run's"


def test_an_id_that_is_used_again_does_not_get_the_old_answer(node: NodeDir) -> None:
    """Ids wrap: what the hub says of a job that ended before this one began is about another job."""
    node.step(7, BATCH_STEP, 1000)
    node.update(1005)
    node.questions.ready = [answer(7, 1000, "COMPLETED", start=T0 - 90_000, end=T0 - 80_000)]
    assert not node.update(1015).ended
    assert not node.update(1025).holdings


def test_a_short_run_between_two_ticks_is_told_with_its_end(node: NodeDir) -> None:
    """Holding and end come in the same map, once; its start may come later still."""
    node.update(0)
    node.file("7.start", 1, gpus="0")
    node.file("7.end", 3)
    found = node.update(10)
    assert (short(found), found.ended) == ({(7, "GPU-3", "prolog", "single")}, ((7, us(3)),))
    assert node.update(20).ended == ()
    node.questions.ready = [answer(7, 1, "COMPLETED", end=T0 + 3)]
    assert node.update(30).late_keys == ((7, us(1), RunKey("gw", 7, T0 + 1)),)


def test_an_answer_that_comes_with_the_end_is_not_lost(node: NodeDir) -> None:
    """The start of a run is told in the very tick in which its end is seen: the key still reaches its hours."""
    node.file("7.start", 1, gpus="0")
    assert only(node.update(5)).run_key is None
    node.file("7.end", 8)
    node.questions.ready = [answer(7, 1, "COMPLETED", end=T0 + 8)]
    found = node.update(10)
    assert (found.ended, found.late_keys) == (((7, us(8)),), ((7, us(1), RunKey("gw", 7, T0 + 1)),))


def test_left_over_files_need_somebody_to_vouch(node: NodeDir) -> None:
    """At the agent's start a prolog's file without socket and epilog may be a left-over: no holding until confirmed."""
    node.file("7.start", 1, gpus="0")
    node.file("8.start", 1, gpus="1")
    node.start_map()
    assert node.update(50).holdings == ()
    assert set(node.questions.asked) == {(7, us(1)), (8, us(1))}
    gone = RunAnswer(8, us(1), MapSource.SLURMCTLD, GONE)
    node.questions.ready = [answer(7, 1, source=MapSource.SLURMCTLD), gone]
    found = node.update(60)
    assert short(found) == {(7, "GPU-3", "prolog", "confirmed")}
    assert dict(found.ended).keys() == {8}


def test_files_from_before_the_boot_are_nobodys(node: NodeDir) -> None:
    """A node that went down in mid-job: what its prologs left on a disk is no run."""
    prolog = PrologSource(node.jobs)
    tracker = RunTracker("gpu1", node.spool, prolog, boot_us=lambda: us(100))
    node.file("7.start", 1, gpus="0")
    node.file("8.start", 101, gpus="1")
    tracker.update(us(90), {})
    assert tracker.update(us(105), {}) == []
    assert set(tracker.runs) == {8}


def test_a_gpu_that_nvml_lacks_is_told_as_missing(node: NodeDir) -> None:
    """Slurm gives out position 2 (minor 0), the driver lists no such GPU."""
    node.new_map(gpus=GPUS[1:])
    node.file("7.start", 1, gpus="2,9")
    found = node.update(5, gpus=GPUS[1:])
    assert {(item.gpu_uuid, item.reason) for item in found.holdings} == {
        ("missing:gpu1:2", "not_in_nvml"),
        ("missing:gpu1:9", "not_in_nvml"),
    }


def test_a_lost_gpu_keeps_its_holding(node: NodeDir) -> None:
    """A GPU that falls off the bus in mid-job is still the job's; nothing is guessed while the driver lists none."""
    node.new_map(gpus=())
    node.file("7.start", 1, gpus="0")
    assert not node.update(2, gpus=()).holdings
    node.update(5)
    assert short(node.update(15, gpus=GPUS[:3])) == {(7, "GPU-3", "prolog", "single")}


def test_mig_instances_are_found_by_their_capability_minors(node: NodeDir) -> None:
    """A row with nvidia-cap files is the instance behind them, not the GPU that it lies on; cgroup facts agree."""
    gpus = (
        GpuIdentity("GPU-0", 0, 0),
        GpuIdentity("MIG-a", 0, 12, parent_uuid="GPU-0", instance="1/0"),
        GpuIdentity("MIG-b", 0, 21, parent_uuid="GPU-0", instance="2/0"),
    )
    node.devices = [DevicePosition(0, minor=0, cap_minors=(20, 21)), DevicePosition(1, minor=0, cap_minors=(11, 12))]
    node.table = PositionTable(lambda: node.devices)
    node.table.check()
    node.new_map(Fixed(MapSource.CGROUP, job7=MinorFacts(frozenset({0}), frozenset({11, 12}))), gpus=gpus)
    node.file("7.start", 1, gpus="1")
    found = node.update(5, {"GPU-0": frozenset({70})}, {7: frozenset({70})}, gpus)
    assert short(found) == {(7, "MIG-a", "prolog", "confirmed")}


def test_a_changed_gres_conf_is_not_believed_until_slurmd_restarts(node: NodeDir, tmp_path: Path) -> None:
    """Positions that differ resolve to nothing; a running job keeps its GPU; after slurmd's restart they count."""
    conf, pid_file = tmp_path / "gres.conf", tmp_path / "slurmd.pid"
    conf.write_text("1")
    pid_file.write_text("1")
    node.table = PositionTable(lambda: node.devices, (conf,), pid_file)
    node.table.check()
    node.new_map()
    node.file("7.start", 1, gpus="0")
    node.update(5)
    swapped = [node.devices[1], node.devices[0], *node.devices[2:]]
    node.devices = [DevicePosition(at, item.files, minor=item.minor) for at, item in enumerate(swapped)]
    os.utime(conf, (T0, T0))
    node.table.check()
    node.file("8.start", 6, gpus="1")
    assert short(node.update(15)) == {(7, "GPU-3", "prolog", "single")}
    os.utime(pid_file, (T0, T0))
    node.table.check()
    assert short(node.update(25)) == {(7, "GPU-3", "prolog", "conflict"), (8, "GPU-3", "prolog", "conflict")}


def test_a_failing_list_says_why_and_maps_nothing(node: NodeDir) -> None:
    """Without slurmd -G positions mean nothing: no holding, a reason in `sources`, and a question."""

    def fail() -> list[DevicePosition]:
        raise SlurmError("slurmd -G: no such command")

    node.table = PositionTable(fail)
    node.table.check()
    node.new_map()
    node.file("7.start", 1, gpus="0")
    assert not node.update(5).holdings
    assert node.map.sources["positions"] == "slurmd -G: no such command"


def test_a_node_without_gpus_asks_nothing(node: NodeDir) -> None:
    """Jobs of a CPU node are no question to anybody."""
    node.devices = []
    node.table = PositionTable(lambda: node.devices)
    node.table.check()
    node.new_map(gpus=())
    node.step(7, BATCH_STEP, 1)
    assert not node.update(5, gpus=()).holdings
    assert not node.questions.asked


def test_a_job_without_gpus_is_asked_about_once_answered(node: NodeDir) -> None:
    """No variable is no proof; the answer "no GPU here" is, and ends the questions."""
    node.step(7, BATCH_STEP, 1)
    node.file("7.start", 0.5, gpus="")
    node.update(5)
    assert node.questions.asked == [(7, us(0.5))]
    node.questions.ready = [answer(7, 0.5, positions=frozenset(), gpus=0)]
    assert not node.update(15).holdings
    assert len(node.questions.asked) == 1


def test_a_suspended_job_holds_on(node: NodeDir) -> None:
    """Stopped processes keep their GPU, marked so."""
    node.file("7.start", 1, gpus="0")
    assert only(node.update(5, suspended=frozenset({7}))).suspended
    assert not only(node.update(15)).suspended


def test_bad_files_are_no_facts(node: NodeDir, tmp_path: Path) -> None:
    """A link, a huge file, garbage, an impossible id: no holding and no error."""
    jobs = node.jobs
    (tmp_path / "secret").write_text("gpus=0\n")
    (jobs / "7.start").symlink_to(tmp_path / "secret")
    (jobs / "8.start").write_text("gpus=0\n" * 10_000)
    (jobs / "9.start").write_bytes(b"gpus=\xff\xfe0\nx")
    (jobs / "99999999999.start").write_text("gpus=0")
    (jobs / "-1.start").write_text("gpus=0")
    (jobs / "10.start").mkdir()
    for job in (8, 9):
        os.utime(jobs / f"{job}.start", (T0, T0))
    assert not node.update(5).holdings
