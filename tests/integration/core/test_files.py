"""Directories that a daemon trusts: nobody else can have put anything there."""

import os
import stat
from pathlib import Path

import pytest

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.files import closed_directory, open_to_others
from gpuwaste.core.groups import group_name

STAFF = 50  # of Debian
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def test_a_missing_directory_is_made_closed(tmp_path: Path) -> None:
    """Its mode is the one asked for, whatever the umask; one that is there and closed is taken as it is."""
    before = os.umask(0o077)
    try:
        closed_directory(tmp_path / "a" / "run", "run_dir", 0o755)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a" / "run").stat().st_mode) == 0o755
    (tmp_path / "a" / "run").chmod(0o700)
    closed_directory(tmp_path / "a" / "run", "run_dir", 0o755)
    assert stat.S_IMODE((tmp_path / "a" / "run").stat().st_mode) == 0o700


def test_one_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    """Sticky or not: a file with our name could be there before us."""
    for mode in (0o777, 0o1777):
        tmp_path.chmod(mode)
        with pytest.raises(ConfigError, match=r"run_dir .* can be written to by everybody"):
            closed_directory(tmp_path, "run_dir")


def test_a_parent_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    """Who may rename the directory may put another in its place; in a sticky one, such as /tmp, he may not."""
    (tmp_path / "run").mkdir()
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="can be written to by everybody"):
        closed_directory(tmp_path / "run", "run_dir")
    tmp_path.chmod(0o1777)
    closed_directory(tmp_path / "run", "run_dir")


@root
def test_a_stranger_s_directory_is_refused(tmp_path: Path) -> None:
    """A user who made it first, or owns one above it, could change it at any time."""
    (tmp_path / "his").mkdir()
    os.chown(tmp_path / "his", 65534, 65534)
    for place in (tmp_path / "his", tmp_path / "his" / "run"):
        with pytest.raises(ConfigError, match="belongs to uid 65534"):
            closed_directory(place, "run_dir")


@root
def test_a_link_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    """A link to the site's large disk is fine, one into a user's directory is not."""
    (tmp_path / "data").mkdir()
    (tmp_path / "his").mkdir()
    os.chown(tmp_path / "his", 65534, 65534)
    (tmp_path / "good").symlink_to("data")
    (tmp_path / "bad").symlink_to("his")
    closed_directory(tmp_path / "good", "state_dir")
    with pytest.raises(ConfigError, match="belongs to uid 65534"):
        closed_directory(tmp_path / "bad", "state_dir")


@root
def test_another_group_s_directory_is_refused(tmp_path: Path) -> None:
    """Members of a group that is not ours must not write there."""
    os.chown(tmp_path, 0, 65534)
    tmp_path.chmod(0o770)
    with pytest.raises(ConfigError, match="by group nogroup: chmod g-w"):
        closed_directory(tmp_path, "state_dir")


def test_what_cannot_be_a_directory_is_named(tmp_path: Path) -> None:
    """A file in its place, and a loop of links, are one line with the key."""
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file", "loop"):
        with pytest.raises(ConfigError, match=rf"run_dir .*{name}: cannot be used"):
            closed_directory(tmp_path / name, "run_dir")


def of_staff(place: Path) -> Path:
    """Make a directory as Debian makes /usr/local: root's, and its group writes."""
    path = place / "local"
    path.mkdir()
    os.chown(path, 0, STAFF)
    path.chmod(0o2775)
    return path


@root
@pytest.mark.parametrize("layout", ["parent", "link", "target", "middle"])
def test_a_group_that_could_exchange_a_directory_on_the_way_is_refused(layout: str, tmp_path: Path) -> None:
    """The parent, the parent of a link, of its target, of a link in the middle: named with the chmod that closes it."""
    local, closed = of_staff(tmp_path), tmp_path / "closed"
    for place in (local, closed):
        (place / "a" / "run" if place == closed else place / "run").mkdir(parents=True)
    (closed / "link").symlink_to(local / "run")
    (local / "link").symlink_to(closed / "a" / "run")
    (local / "middle").symlink_to(closed / "a")
    paths = {
        "parent": local / "run",
        "link": local / "link",
        "target": closed / "link",
        "middle": local / "middle" / "run",
    }
    with pytest.raises(ConfigError) as caught:
        closed_directory(paths[layout], "state_dir")
    group = group_name(STAFF) or str(STAFF)
    assert str(caught.value).endswith(f"{local} can be written to by group {group}: chmod g-w {local}")
    local.chmod(0o2755)
    closed_directory(paths[layout], "state_dir")


@root
def test_our_own_group_may_write(tmp_path: Path) -> None:
    """A service whose group has the directory above trusts it; in a sticky one a stranger's link is refused."""
    local = of_staff(tmp_path)
    (local / "run").mkdir()
    assert open_to_others(local / "run", 0, STAFF) == ""
    local.chmod(0o1777)
    (local / "link").symlink_to("run")
    assert open_to_others(local / "link", 0, 0) == ""
    os.lchown(local / "link", 65534, 65534)
    assert "belongs to uid 65534" in open_to_others(local / "link", 0, 0)
