"""The local sources of facts, each on files of its own: what they read, and when they stay silent."""

from pathlib import Path

import pytest

from gpuwaste.agent.facts.device_cgroup import CgroupSource, parse_devices
from gpuwaste.agent.facts.gpu_identities import Identities
from gpuwaste.agent.facts.prolog_files import PrologSource
from gpuwaste.agent.facts.run_facts import LocalRun, MinorFacts
from gpuwaste.agent.readings import GpuIdentity
from gpuwaste.slurm.formats.gpu_positions import DRM_MAJOR, NVIDIA_MAJOR, DeviceNode, DevicePosition, parse_slurmd_g


def run_of(job: int = 7) -> LocalRun:
    """Return a run with a batch step."""
    return LocalRun(job, 5, 5, anchored=True)


def test_a_v1_device_list_names_render_nodes() -> None:
    """Render nodes are told with their driver's major; where all are allowed nothing is said of them."""
    render = frozenset({DeviceNode(DRM_MAJOR, 128), DeviceNode(DRM_MAJOR, 131)})
    assert parse_devices("c 226:128 rw\nc 226:131 rw\n", None) == MinorFacts(frozenset(), others=render)
    assert parse_devices("c 195:1 rw\nc 226:131 rw\nc 226:* rw\n", None) == MinorFacts(frozenset({1}))
    assert parse_devices("c 226:* rw\n", None) is None


def test_a_v1_device_list_names_minors(tmp_path: Path) -> None:
    """Control devices are no GPUs; capability devices are those of MIG instances."""
    text = "c 1:3 rwm\nc 195:255 rwm\nc 195:254 rw\nc 195:2 rwm\nc 510:12 rw\nb 8:0 r\n"
    assert parse_devices(text, 510) == MinorFacts(frozenset({2}), frozenset({12}))
    assert parse_devices(text, None) == MinorFacts(frozenset({2}))
    folder = tmp_path / "devices" / "slurm_gpu1" / "uid_1001" / "job_7"
    folder.mkdir(parents=True)
    (folder / "devices.list").write_text("c 195:2 rwm\n")
    source = CgroupSource("gpu1", tmp_path, tmp_path)
    assert source.facts(run_of()) == MinorFacts(frozenset({2}))


@pytest.mark.parametrize("text", ["a *:* rwm\n", "c 195:* rwm\n", "c *:* rwm", "", "rubbish\n", "c 1:3 rwm\n"])
def test_a_device_list_that_tells_nothing_is_silent(text: str) -> None:
    """An unconstrained list would name every GPU: no facts rather than wrong ones."""
    assert parse_devices(text, 510) is None


def test_a_missing_directory_is_a_line_of_health(tmp_path: Path) -> None:
    """No prolog installed, or no right to make the directory."""
    source = PrologSource(tmp_path / "none")
    source.scan()
    assert "no prolog files" in source.health


def test_shards_stand_beside_their_gpu() -> None:
    """`slurmd -G` prints shards between GPUs: positions count GPUs alone, each knows into how many parts it goes."""
    text = """slurmd: Gres Name=shard Type=a100 Count=4 Index=3 ID=1918986455 File=/none/nvidia3 (null)
slurmd: Gres Name=gpu Type=a100 Count=1 Index=3 ID=7696487 File=/none/nvidia3 (null)
slurmd: Gres Name=gpu Type=a100 Count=1 Index=1 ID=7696487 File=/none/nvidia1 (null)
"""
    found = [(device.position, device.minor, device.shards) for device in parse_slurmd_g(text)]
    assert found == [(0, 3, 4), (1, 1, 0)]


def test_a_minor_means_another_gpu_with_another_driver() -> None:
    """/dev/nvidia1 and /dev/dri/card1 are two GPUs; a partition is found by its render node, its GPU is not meant."""
    card = (DeviceNode(DRM_MAJOR, 128), DeviceNode(DRM_MAJOR, 1))
    whole = GpuIdentity("GPU-amd", 0, None, vendor="amd")
    part = GpuIdentity("GPU-amd-p0", 0, 128, vendor="amd", nodes=card, parent_uuid="GPU-amd", instance="0")
    identities = Identities()
    identities.update([GpuIdentity("GPU-nvidia", 0, 1), whole, part])
    found = {
        name: identities.of_device(DevicePosition(0, minor=minor, major=major))
        for name, major, minor in (
            ("nvidia1", NVIDIA_MAJOR, 1),
            ("card1", DRM_MAJOR, 1),
            ("renderD128", DRM_MAJOR, 128),
        )
    }
    assert found == {"nvidia1": "GPU-nvidia", "card1": "GPU-amd-p0", "renderD128": "GPU-amd-p0"}
    assert identities.of_minors(MinorFacts(frozenset({1}), others=frozenset(card))) == {"GPU-nvidia", "GPU-amd-p0"}
    assert identities.has_instances("GPU-amd")
