"""The agent's health file: what is known against a GPU, by Slurm's positions, from one tick to the next."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.fakes import START_US

from gpuwaste.agent.agent_health import HealthSink, health_xids
from gpuwaste.agent.facts.gpu_identities import PositionTable
from gpuwaste.agent.observation import Observation
from gpuwaste.agent.readings import GpuIdentity, GpuReading
from gpuwaste.core.errors import ConfigError
from gpuwaste.ledger.gpu_sample import UnknownReason
from gpuwaste.slurm.formats.gpu_positions import DevicePosition

GPUS = tuple(GpuIdentity(f"GPU-{minor}", minor, minor) for minor in range(3))


def table(minors: Sequence[int] = (2, 0, 1)) -> PositionTable:
    """Return a list in which position i is the device with the i-th minor."""
    positions = PositionTable(lambda: [DevicePosition(at, minor=minor) for at, minor in enumerate(minors)])
    positions.check()
    return positions


def seen(
    at_s: int = 0, *, lost: Sequence[str] = (), reason: str = "", xids: dict[tuple[str, int], int] | None = None
) -> Observation:
    """Return an observation of the three GPUs."""
    reasons = {gpu.uuid: UnknownReason(reason or ("gpu_lost" if gpu.uuid in lost else "")) for gpu in GPUS}
    readings = {uuid: GpuReading(uuid, reason=why) for uuid, why in reasons.items()}
    return Observation(START_US + at_s * 1_000_000, at_s * 1_000_000, GPUS, readings, xids=xids or {})


def rows(run_dir: Path) -> list[list[str]]:
    """Return the file's lines, cut into words."""
    return [line.split() for line in (run_dir / "health").read_text().splitlines()]


@pytest.fixture
def sink(tmp_path: Path) -> HealthSink:
    return HealthSink(tmp_path, table(), frozenset({79, 95}))


def test_a_healthy_node_has_a_line_for_each_gpu(sink: HealthSink, tmp_path: Path) -> None:
    """UUID, minor, Slurm's position of that minor, and ok; readable by everybody, nothing else left behind."""
    sink.accept(seen())
    now = str(START_US // 1_000_000)
    assert rows(tmp_path) == [
        ["gpuwaste-health", "1", now],
        ["GPU-0", "0", "1", "ok", "0", "-"],
        ["GPU-1", "1", "2", "ok", "0", "-"],
        ["GPU-2", "2", "0", "ok", "0", "-"],
    ]
    assert (tmp_path / "health").stat().st_mode & 0o777 == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["health"]


def test_a_lost_gpu_keeps_the_time_since_when(sink: HealthSink, tmp_path: Path) -> None:
    """Two ticks later it is still lost since the first; when NVML answers again it is ok at once."""
    sink.accept(seen(0))
    for at_s in (10, 20):
        sink.accept(seen(at_s, lost=["GPU-1"]))
    assert rows(tmp_path)[2] == ["GPU-1", "1", "2", "lost", str(START_US // 1_000_000 + 10), "gpu_lost"]
    sink.accept(seen(30))
    assert rows(tmp_path)[2][3] == "ok"


def test_only_listed_xids_count_until_the_gpus_were_released(sink: HealthSink, tmp_path: Path) -> None:
    """Xid 13 is a program's own; Xid 79 stays until a release, after which a new one counts again."""
    sink.accept(seen(0, xids={("GPU-0", 13): 5}))
    assert rows(tmp_path)[1][3] == "ok"
    errors = {("GPU-0", 79): 1}
    sink.accept(seen(10, xids=errors))
    assert rows(tmp_path)[1][3:] == ["xid", str(START_US // 1_000_000 + 10), "xid_79"]
    sink.accept(seen(20, reason="released", xids=errors))
    sink.accept(seen(30, xids=errors))
    assert rows(tmp_path)[1][3] == "ok"
    sink.accept(seen(40, xids={("GPU-0", 79): 2}))
    assert rows(tmp_path)[1][3] == "xid"


@pytest.mark.parametrize("reason", ["driver", "clock_step", "released"])
def test_a_tick_without_an_answer_of_the_driver_leaves_the_file(sink: HealthSink, tmp_path: Path, reason: str) -> None:
    """Nothing is known then: the file grows old instead of calling a lost GPU sound."""
    sink.accept(seen(0, lost=["GPU-1"]))
    before = rows(tmp_path)
    sink.accept(seen(10, reason=reason))
    assert rows(tmp_path) == before


def test_a_mig_parent_has_its_instances_positions(tmp_path: Path) -> None:
    """A job with an instance of a lost GPU is held back, too."""
    parent = GPUS[0]
    instances = [
        replace(parent, uuid=f"MIG-{n}", minor=100 + n, parent_uuid=parent.uuid, instance=f"{n}/0") for n in (1, 2)
    ]
    positions = PositionTable(lambda: [DevicePosition(at, minor=0, cap_minors=(101 + at,)) for at in (0, 1)])
    positions.check()
    sink = HealthSink(tmp_path, positions, frozenset())
    gpus = (parent, *instances)
    sink.accept(
        Observation(START_US, 0, gpus, {gpu.uuid: GpuReading(gpu.uuid, reason=UnknownReason.GPU_LOST) for gpu in gpus})
    )
    assert rows(tmp_path)[1:] == [["GPU-0", "0", "0,1", "lost", str(START_US // 1_000_000), "gpu_lost"]]


def test_a_doubtful_position_is_nobodys(tmp_path: Path) -> None:
    """gres.conf changed under the running slurmd: a job must not be held back for a GPU that it did not get."""
    conf, pid = tmp_path / "gres.conf", tmp_path / "slurmd.pid"
    conf.write_text("1")
    pid.write_text("1")
    orders = [[0, 1, 2], [0, 2, 1]]
    positions = PositionTable(
        lambda: [DevicePosition(at, minor=minor) for at, minor in enumerate(orders.pop(0))], [conf], pid
    )
    positions.check()
    conf.write_text("two")
    conf.touch()
    positions.check()
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    HealthSink(run_dir, positions, frozenset()).accept(seen())
    assert [row[2] for row in rows(run_dir)[1:]] == ["0", "-", "-"]


def test_a_full_disk_is_the_sinks_own_trouble(tmp_path: Path) -> None:
    """The error reaches the sampler, which says it and goes on; the states are known all the same."""
    sink = HealthSink(tmp_path / "none", table(), frozenset())
    with pytest.raises(OSError, match="No such file"):
        sink.accept(seen(lost=["GPU-1"]))
    assert [state.state for state in sink.states] == ["ok", "lost", "ok"]


@pytest.mark.parametrize("word", ["", "x", "-1", "7.5", "1000000", "٣"])
def test_a_word_that_is_no_xid_is_refused(word: str) -> None:
    """The message names the key."""
    with pytest.raises(ConfigError, match="health_xids"):
        health_xids([word])
