"""The manual pages, as rpmbuild makes them from the command's own parser."""

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwaste.cli.main import command_names

ROOT = Path(__file__).parents[3]
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the pages."""
    place = tmp_path_factory.mktemp("manual")
    argv = [sys.executable, str(ROOT / "packaging/rpm/manual.py"), "--site", str(ROOT / "src")]
    subprocess.run([*argv, "--share", str(place)], check=True)
    return place / "man"


def page(made: Path, name: str) -> bytes:
    return gzip.decompress((made / "man1" / f"{name}.1.gz").read_bytes())


def test_each_command_has_a_page_with_every_section(made: Path) -> None:
    """One page for the command and one for each of its commands, all with the sections that man-pages(7) names."""
    names = ["gpuwaste", *(f"gpuwaste-{name}" for name in command_names())]
    assert sorted(path.name.removesuffix(".1.gz") for path in (made / "man1").iterdir()) == sorted(names)
    for name in names:
        found = [line.removeprefix(".SH ") for line in page(made, name).decode().splitlines() if line.startswith(".SH")]
        assert found == list(SECTIONS), name


def test_each_page_is_rendered_without_a_warning(made: Path) -> None:
    """Groff with all its warnings on has nothing to say, and the text of an example comes out whole."""
    for path in (made / "man1").iterdir():
        argv = ["groff", "-man", "-ww", "-Tascii", "-P-bcou"]
        done = subprocess.run(argv, input=gzip.decompress(path.read_bytes()), capture_output=True, check=True)
        assert not done.stderr, (path.name, done.stderr)
    argv = ["groff", "-man", "-Tascii", "-P-bcou"]
    text = subprocess.run(argv, input=page(made, "gpuwaste-report"), capture_output=True, check=True).stdout
    assert b"gpuwaste report --allusers --fail-above 20" in text
