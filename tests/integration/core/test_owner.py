"""Whom root becomes before it works in a directory: whoever could swap a name on the way to it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.passable import let_others_through

from gpuwaste.core.errors import ConfigError
from gpuwaste.core.owner import as_owner, owner_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
NOBODY, STRANGER = 65534, 12345


def of_root(place: Path) -> Path:
    (place / "a").mkdir(mode=0o755)
    return place / "a"


def theirs(place: Path) -> Path:
    path = of_root(place)
    os.chown(path, NOBODY, NOBODY)
    return path


def below_theirs(place: Path) -> Path:
    path = theirs(place) / "roots"
    path.mkdir()
    return path


def missing_in_theirs(place: Path) -> Path:
    return theirs(place) / "b" / "c"


def a_file_of_root_in_theirs(place: Path) -> Path:
    path = theirs(place) / "file"
    path.touch()
    return path


def a_link_out_of_theirs(place: Path) -> Path:
    path = theirs(place) / "link"
    path.symlink_to("../other")
    (place / "other").mkdir()
    return path


def a_link_into_theirs(place: Path) -> Path:
    theirs(place)
    (place / "link").symlink_to(place / "a")
    return place / "link"


def their_link_in_a_sticky_one(place: Path) -> Path:
    (place / "tmp").mkdir()
    (place / "tmp").chmod(0o1777)
    (place / "other").mkdir()
    (place / "tmp" / "link").symlink_to(place / "other")
    os.lchown(place / "tmp" / "link", NOBODY, NOBODY)
    return place / "tmp" / "link"


def dots_through_theirs(place: Path) -> Path:
    theirs(place)
    (place / "other").mkdir()
    return place / "a" / ".." / "other"


@pytest.mark.parametrize(
    ("layout", "uid"),
    [
        (of_root, None),
        (theirs, NOBODY),
        (below_theirs, NOBODY),
        (missing_in_theirs, NOBODY),
        (a_file_of_root_in_theirs, NOBODY),
        (a_link_out_of_theirs, NOBODY),
        (a_link_into_theirs, NOBODY),
        (their_link_in_a_sticky_one, NOBODY),
        (dots_through_theirs, None),
    ],
)
def test_whoever_could_swap_a_name_on_the_way_is_the_owner(
    tmp_path: Path, layout: Callable[[Path], Path], uid: int | None
) -> None:
    """Directories, links, what is missing and what is root's inside another user's directory."""
    owner = owner_of(layout(tmp_path))
    assert (None if owner is None else owner.uid) == uid


def test_what_more_than_one_could_change_is_refused(tmp_path: Path) -> None:
    """Two users' directories, a directory of root that others may write to, a name that anybody could take first."""
    path = theirs(tmp_path) / "b"
    path.mkdir()
    os.chown(path, STRANGER, STRANGER)
    with pytest.raises(ConfigError, match="12345 and nobody"):
        owner_of(path)
    for mode, gid in ((0o777, 0), (0o775, NOBODY), (0o1777, 0)):
        opened = tmp_path / "opened"
        opened.mkdir(exist_ok=True)
        os.chown(opened, 0, gid)
        opened.chmod(mode)
        for place in (opened, opened / "missing"):
            with pytest.raises(ConfigError, match="others may write to it"):
                owner_of(place)
    assert owner_of(opened, sticky=True) is None
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="too many symbolic links"):
        owner_of(loop)


@pytest.mark.sockets  # a folder that others may get to
def test_a_call_as_the_owner_is_theirs_and_over_afterwards(tmp_path: Path) -> None:
    """Files made within the block are the owner's, root's own are closed to it; then root is root again."""
    path, secret = theirs(tmp_path), tmp_path / "secret"
    secret.touch(mode=0o600)
    let_others_through(tmp_path)
    before = (os.geteuid(), os.getegid(), os.getgroups())
    with pytest.raises(ZeroDivisionError), as_owner(path) as owner:
        assert owner is not None
        assert (os.geteuid(), os.getegid()) == (NOBODY, owner.gid)
        (path / "made").touch()
        with pytest.raises(PermissionError):
            secret.read_text()
        raise ZeroDivisionError
    assert (os.geteuid(), os.getegid(), os.getgroups()) == before
    assert (path / "made").stat().st_uid == NOBODY


def test_becoming_the_owner_is_for_good(tmp_path: Path) -> None:
    """Neither uid, gid nor a group of root is left; where gpuwaste itself cannot be read then, one line says so."""
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom gpuwaste.core import errors, owner\n"
        "try: owner.become_owner(Path(sys.argv[1]))\n"
        "except errors.ConfigError as error: assert 'install it where' in str(error), error\n"
        "print(os.getresuid(), os.getresgid(), 0 in os.getgroups())\n"
        "os.setuid(0)\n"
    )
    argv = [sys.executable, "-c", code, str(theirs(tmp_path))]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"({NOBODY}, {NOBODY}, {NOBODY})"), done.stderr
    assert done.stdout.strip().endswith("False")
    assert "PermissionError" in done.stderr
