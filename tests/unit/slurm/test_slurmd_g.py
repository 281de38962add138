"""The order of slurmd -G is the position, whatever Index= says."""

from pathlib import Path

import pytest

from gpuwaste.core.errors import ParseError
from gpuwaste.slurm.formats.gpu_positions import DRM_MAJOR, NVIDIA_MAJOR, DeviceNode, device_node, parse_slurmd_g


def _digits(path: str) -> DeviceNode | None:
    return DeviceNode(NVIDIA_MAJOR, int(path[-1])) if path[-1].isdigit() else None


def _row(rest: str) -> str:
    return f"slurmd: Gres Name=gpu {rest}\n"


@pytest.mark.parametrize(
    ("text", "minors"),
    [
        (_row("Type=a100 Count=4 Index=0 ID=7696487 File=/dev/nvidia[0-3] (null)"), [0, 1, 2, 3]),
        (_row("Type=a100 Count=4 Index=0 ID=7696487 File=/dev/nvidia[3,1,0,2] (null)"), [3, 1, 0, 2]),
        (_row("Count=2 ID=7696487 File=/dev/nvidia3,/dev/nvidia1 Links=(null) Flags=HAS_FILE"), [3, 1]),
        (
            _row("Type=v100 Count=1 Index=2 ID=7696487 File=/dev/nvidia2 Links=-1,0 Flags=HAS_FILE,HAS_TYPE")
            + _row("Type=v100 Count=1 Index=0 ID=7696487 File=/dev/nvidia0 Links=0,-1 Flags=HAS_FILE,HAS_TYPE"),
            [2, 0],
        ),
        (_row("Count=2 Index=0 ID=7696487 (null)"), [None, None]),
        ("", []),
    ],
)
def test_the_order_of_rows_and_files_is_the_position(text: str, minors: list[int | None]) -> None:
    """Index= is not read, a range of files is expanded in the written order."""
    devices = parse_slurmd_g(text, _digits)
    assert [device.position for device in devices] == list(range(len(minors)))
    assert [device.minor for device in devices] == minors


def test_log_lines_and_other_gres_are_left_out() -> None:
    """An ordinary user's run complains about its log file first; shards and NICs share devices with GPUs."""
    text = (
        "(null): _log_init: Unable to open logfile `/var/log/slurmd.log': Permission denied\n"
        "slurmd: Gres Name=shard Type=a100 Count=8 ID=1 File=/dev/nvidia0\n"
        "[2024-05-01T00:00:00.000] debug:  Gres Name=gpu Type=a100 Count=1 ID=7696487 File=/dev/nvidia5 (null)\n"
    )
    assert [(device.position, device.file, device.type) for device in parse_slurmd_g(text, _digits)] == [
        (0, "/dev/nvidia5", "a100")
    ]


def test_a_mig_instance_is_one_position_with_its_capabilities() -> None:
    """Several files of Count=1 are one instance: its card's minor and its capability minors."""
    files = "/dev/nvidia1,/dev/nvidia-caps/nvidia-cap21,/dev/nvidia-caps/nvidia-cap22"
    row = _row(f"Type=a100_1g.5gb Count=1 ID=1 File={files} UniqueId=MIG-5c1b Flags=HAS_FILE")
    (device,) = parse_slurmd_g(row, _digits)
    assert (device.minor, device.cap_minors, device.unique_id) == (1, (21, 22), "MIG-5c1b")


@pytest.mark.parametrize(
    "rest", ["Count=3 File=/dev/nvidia[0-1]", "Count=x", "Count=9999 (null)", "Count=2 File=a[", ""]
)
def test_refuses_rows_that_do_not_add_up(rest: str) -> None:
    """A wrong map is worse than none."""
    with pytest.raises(ParseError):
        parse_slurmd_g(_row(rest))


def test_the_minor_is_the_device_files_own(tmp_path: Path) -> None:
    """A character device is asked, whatever its name; a file that is none gives the digits of its name."""
    link = tmp_path / "nvidia9"
    link.symlink_to("/dev/null")
    assert device_node(str(link)) == DeviceNode(1, 3)
    assert device_node("/nonexistent/nvidia12") == DeviceNode(NVIDIA_MAJOR, 12)
    assert device_node("/nonexistent/dri/renderD128") == DeviceNode(DRM_MAJOR, 128)
    assert device_node("/nonexistent/dri/card1") == DeviceNode(DRM_MAJOR, 1)
    assert device_node("/nonexistent/card") is None
