"""Folders for unpacked packages and roots: what a root changes is its own, and nothing is left behind."""

import shutil
import subprocess
import sys
from pathlib import Path

from tools.rpm.scratch import layered, scratch
from tools.rpm.wheels import ROOT


def mounts(path: Path) -> list[str]:
    """Return what is mounted at and below a path."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if f" {path}" in line]


def test_a_layer_leaves_what_is_below_as_it_was(tmp_path: Path) -> None:
    """What is changed, removed and added in a layer is not so below it; without rights to mount there is no layer."""
    lower = tmp_path / "lower"
    lower.mkdir()
    for name in ("changed", "removed"):
        (lower / name).write_text("before\n", encoding="utf-8")
    with scratch() as place:
        root = place / "root"
        if layered(lower, root):
            (root / "changed").write_text("after\n", encoding="utf-8")
            (root / "removed").unlink()
            (root / "added").touch()
            assert mounts(place)
        else:
            assert list(place.iterdir()) == []
    assert {path.name: path.read_text(encoding="utf-8") for path in lower.iterdir()} == {
        "changed": "before\n",
        "removed": "before\n",
    }
    assert not place.exists()
    assert mounts(place) == []


def test_nothing_is_left_of_a_layer_that_cannot_be(tmp_path: Path) -> None:
    """Over a folder that does not exist there is no layer, and the place of the root is free for a copy."""
    with scratch() as place:
        assert not layered(tmp_path / "nowhere", place / "root")
        assert list(place.iterdir()) == []


def test_what_a_killed_process_left_ends_with_the_next_use() -> None:
    """A process that is killed cannot unmount; whoever makes the next folder does."""
    script = (
        "from tools.rpm.scratch import scratch\nwith scratch() as place:\n    print(place, flush=True)\n    input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        place = Path(process.stdout.readline().strip())
        mounted = bool(mounts(place))
        process.kill()
    with scratch():
        assert mounts(place) == []
        assert not (mounted and place.exists())
    shutil.rmtree(place, ignore_errors=True)
