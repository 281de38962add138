"""Packages that are kept under build/: built again only where what they are made of has changed."""

from pathlib import Path

import pytest
from tools.rpm.kept import kept

from gpuwaste.core.errors import GpuwasteError


class Builder:
    """Writes one package and counts how often."""

    def __init__(self) -> None:
        """Nothing is built yet."""
        self.built = 0

    def __call__(self, folder: Path) -> list[Path]:
        """Build."""
        self.built += 1
        package = folder / "RPMS" / "one.rpm"
        package.parent.mkdir()
        package.write_text(str(self.built), encoding="utf-8")
        return [package]


def test_the_same_mark_builds_once(tmp_path: Path) -> None:
    """A second call with the same mark builds nothing; another mark builds in an empty folder."""
    make, folder = Builder(), tmp_path / "rpm"
    first = kept(folder, "a", make)
    assert kept(folder, "a", make) == first == [folder / "RPMS" / "one.rpm"]
    assert (make.built, first[0].read_text(encoding="utf-8")) == (1, "1")
    assert kept(folder, "b", make)[0].read_text(encoding="utf-8") == "2"


def test_a_tree_that_was_moved_has_its_own_packages(tmp_path: Path) -> None:
    """The packages of a copied build folder are those of the copy."""
    make = Builder()
    kept(tmp_path / "old" / "rpm", "a", make)
    (tmp_path / "old").rename(tmp_path / "new")
    (package,) = kept(tmp_path / "new" / "rpm", "a", make)
    assert (make.built, package.exists()) == (1, True)


def test_a_build_that_failed_is_done_again(tmp_path: Path) -> None:
    """What a failed build has left is not taken for packages."""

    def fail(folder: Path) -> list[Path]:
        (folder / "half.rpm").touch()
        raise GpuwasteError("no space")

    with pytest.raises(GpuwasteError, match="no space"):
        kept(tmp_path / "rpm", "a", fail)
    (package,) = kept(tmp_path / "rpm", "a", Builder())
    assert package.exists()
    assert not (tmp_path / "rpm" / "half.rpm").exists()
