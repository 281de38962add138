"""The manual pages and bash's completion, as rpmbuild makes them from the command's own parser."""

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
    """Write the pages and the completion."""
    place = tmp_path_factory.mktemp("manual")
    argv = [sys.executable, str(ROOT / "packaging/rpm/manual.py"), "--site", str(ROOT / "src")]
    subprocess.run([*argv, "--man", str(place / "man"), "--completion", str(place / "gpuwaste")], check=True)
    return place


def page(made: Path, name: str) -> bytes:
    return gzip.decompress((made / "man" / f"{name}.1.gz").read_bytes())


def test_each_command_has_a_page_with_every_section(made: Path) -> None:
    """One page for the command and one for each of its commands, all with the sections that man-pages(7) names."""
    names = ["gpuwaste", *(f"gpuwaste-{name}" for name in command_names())]
    assert sorted(path.name.removesuffix(".1.gz") for path in (made / "man").iterdir()) == sorted(names)
    for name in names:
        found = [line.removeprefix(".SH ") for line in page(made, name).decode().splitlines() if line.startswith(".SH")]
        assert found == list(SECTIONS), name


def test_each_page_is_rendered_without_a_warning(made: Path) -> None:
    """Groff with all its warnings on has nothing to say, and the text of an example comes out whole."""
    for path in (made / "man").iterdir():
        argv = ["groff", "-man", "-ww", "-Tascii", "-P-bcou"]
        done = subprocess.run(argv, input=gzip.decompress(path.read_bytes()), capture_output=True, check=True)
        assert not done.stderr, (path.name, done.stderr)
    argv = ["groff", "-man", "-Tascii", "-P-bcou"]
    text = subprocess.run(argv, input=page(made, "gpuwaste-report"), capture_output=True, check=True).stdout
    assert b"gpuwaste report --allusers --fail-above 20" in text


def completed(made: Path, *typed: str) -> list[str]:
    """Return what bash offers for the last of these words."""
    words = " ".join(f"'{word}'" for word in typed)
    script = f'source {made}/gpuwaste; COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _gpuwaste; printf "%s\\n" '
    done = subprocess.run(["bash", "-c", script + '"${COMPREPLY[@]}"'], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_completion_knows_commands_actions_and_options(made: Path) -> None:
    """Bash itself completes a command, an action of a command, and an option of an action."""
    assert set(command_names()) <= set(completed(made, "gpuwaste", ""))
    assert completed(made, "gpuwaste", "--ver") == ["--version"]
    assert completed(made, "gpuwaste", "config", "ch") == ["check"]
    assert "--role" in completed(made, "gpuwaste", "config", "check", "--")
