"""Unpacking an RPM for its Debian package: rpm2cpio and cpio in a pipe."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tools.deb.build import unpack

from gpuwaste.core.errors import GpuwasteError

pytestmark = pytest.mark.skipif(shutil.which("cpio") is None, reason="cpio is not installed")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return a cpio archive with two files."""
    for name in ("usr/lib/one", "usr/lib/private/two"):
        (tmp_path / "from" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "from" / name).write_text(name)
    names = subprocess.run(["find", "."], cwd=tmp_path / "from", capture_output=True, check=True).stdout
    made = subprocess.run(
        ["cpio", "-o", "-H", "newc"], cwd=tmp_path / "from", input=names, capture_output=True, check=True
    )
    (tmp_path / "archive").write_bytes(made.stdout)
    (tmp_path / "tree").mkdir()
    return tmp_path / "archive"


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Put an rpm2cpio of ours before the host's."""
    command = folder / "bin" / "rpm2cpio"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}:{os.environ['PATH']}")


def test_padding_after_the_last_entry_is_no_error(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More padding than a pipe holds is read to its end: rpm2cpio is not killed by SIGPIPE."""
    pretend(monkeypatch, archive.parent, 'cat "$1" && exec head -c 1048576 /dev/zero')
    unpack(archive, archive.parent / "tree")
    assert (archive.parent / "tree/usr/lib/private/two").read_text() == "usr/lib/private/two"


@pytest.mark.parametrize("script", ["exit 3", "echo garbage"])
def test_a_failure_is_never_empty(archive: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Whichever of the two programs fails, the message ends with what it printed or with its exit code."""
    pretend(monkeypatch, archive.parent, script)
    with pytest.raises(GpuwasteError, match=r"(: cpio: .+|: exit code [1-9]\d*, no output)$"):
        unpack(archive, archive.parent / "tree")
