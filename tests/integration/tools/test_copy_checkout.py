"""tools/copy-checkout takes the files of a checkout in which others work meanwhile."""

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwaste.testing.patience import patient

PROGRAM = Path(__file__).parents[3] / "tools" / "copy-checkout"
FILES = 40
SIZE_B = 1 << 20
FOLDERS = ("src", "agent", "models", "testing")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a checkout with large files, one that git ignores, and one that is gone."""
    root = tmp_path / "root"
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    for number in range(FILES):
        (root / "src" / f"{number}.py").write_bytes(os.urandom(SIZE_B))
    (root / "src" / "0.pyc").write_text("compiled")
    (root / "gone").write_text("gone")
    (root / ".gitignore").write_text("*.pyc\nnot ours\n")
    (root / "not ours").write_text("ignored")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(root), *words], check=True, timeout=patient(30))
    (root / "gone").unlink()
    return root


@pytest.fixture
def linked(root: Path, tmp_path: Path) -> Iterator[None]:
    """Make hard links of its files and remove them, over and over, as a cluster of the demo does."""
    done, other = threading.Event(), tmp_path / "linked"
    files = sorted((root / "src").glob("*.py"))

    def link() -> None:
        while not done.is_set():
            for file in files:
                other.hardlink_to(file)
                other.unlink()

    thread = threading.Thread(target=link)
    thread.start()
    yield
    done.set()
    thread.join()


def copied(root: Path, copy: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run it."""
    words = [str(PROGRAM), str(root), str(copy), *options]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=patient(60))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return an empty folder for the copy."""
    copy = tmp_path / "copy"
    copy.mkdir()
    return copy


@pytest.mark.usefixtures("linked")
def test_files_that_others_link_meanwhile(root: Path, copy: Path) -> None:
    """Tar calls a file changed that got a hard link while it was read; the copy is whole, and it is no failure."""
    done = copied(root, copy)
    assert (done.returncode, done.stderr) == (0, "")
    names = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert names == {".gitignore", *(f"src/{number}.py" for number in range(FILES))}
    for number in range(FILES):
        name = f"src/{number}.py"
        assert (copy / name).read_bytes() == (root / name).read_bytes()


def test_what_is_compiled_comes_too(root: Path, copy: Path) -> None:
    """With --compiled bytecode is in the copy, though git ignores it."""
    assert copied(root, copy, "--compiled").returncode == 0
    assert (copy / "src" / "0.pyc").read_text() == "compiled"
    assert not (copy / "not ours").exists()


def test_a_copy_that_cannot_be_made_says_why(root: Path, tmp_path: Path) -> None:
    """Without a folder for the copy the exit code is not 0, and the line names it."""
    none = copied(root, tmp_path / "nowhere")
    assert none.returncode != 0
    assert "nowhere" in none.stderr
