"""The version of this distribution, whatever a package manager has left of it at that moment."""

from pathlib import Path

import pytest

from gpuwaste.core import version
from gpuwaste.core.version import UNKNOWN, own_version


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only directory in which Python looks for distributions."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    own_version.cache_clear()
    return tmp_path


def lay(site: Path, number: str, metadata: str | None) -> None:
    """Write the directory of a version, without its file where there is no text."""
    folder = site / f"gpuwaste-{number}.dist-info"
    folder.mkdir()
    if metadata is not None:
        (folder / "METADATA").write_text(metadata)


@pytest.mark.parametrize("left", [None, "", "Metadata-Version: 2.1\nName: gpuwaste\n"])
def test_a_version_that_is_half_removed_is_none(site: Path, left: str | None) -> None:
    """The version is the one whose file is whole, and never null, as a hub answered during an upgrade."""
    lay(site, "0.0.9", left)
    assert own_version() == UNKNOWN
    own_version.cache_clear()
    lay(site, "0.1.0", "Metadata-Version: 2.1\nName: gpuwaste\nVersion: 0.1.0\n")
    assert own_version() == "0.1.0"


def test_a_process_keeps_the_version_that_it_was_started_with(site: Path) -> None:
    """Once read, what an upgrade does on the disk changes nothing for a process that runs."""
    lay(site, "0.1.0", "Metadata-Version: 2.1\nName: gpuwaste\nVersion: 0.1.0\n")
    assert version.own_version() == "0.1.0"
    (site / "gpuwaste-0.1.0.dist-info" / "METADATA").unlink()
    assert version.own_version() == "0.1.0"
