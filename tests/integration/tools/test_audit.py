"""tools/audit: "cannot be looked up" is told from "a weakness was found", and neither passes for a clean answer."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpuwaste.testing.patience import patient

AUDIT = Path(__file__).parents[3] / "tools" / "audit"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with the script and a place for pip-audit."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "build" / "audit" / "bin").mkdir(parents=True)
    shutil.copy(AUDIT, tmp_path / "tools" / "audit")
    (tmp_path / "requirements.lock").write_text("one==1 --hash=sha256:0\n")
    return tmp_path


def audited(tree: Path, probe: str, lock: str, *words: str) -> tuple[int, str]:
    """Run it over a pip-audit that does `probe` for what has known weaknesses and `lock` for the lock."""
    tool = tree / "build" / "audit" / "bin" / "pip-audit"
    version = next(line for line in AUDIT.read_text().splitlines() if line.startswith("VERSION=")).partition("=")[2]
    tool.write_text(
        f'#!/bin/sh\ncase "$*" in\n--version) echo "pip-audit {version}" ;;\n'
        f"*requirements.lock*) {lock} ;;\n*) {probe} ;;\nesac\n"
    )
    tool.chmod(0o755)
    done = subprocess.run(
        [tree / "tools" / "audit", *words], capture_output=True, text=True, timeout=patient(60), check=False
    )
    return done.returncode, done.stdout + done.stderr


KNOWS = "echo jinja2 2.4.1 PYSEC-2019-217; exit 1"


@pytest.mark.parametrize("probe", ["echo jinja2 not found on PyPI; exit 1", "exit 0", "echo timed out >&2; exit 2"])
def test_without_a_database_it_says_that_it_was_not_run(tree: Path, probe: str) -> None:
    """One line, and exit status 3; 0 only where the caller allows it."""
    for words, code in (((), 3), (("--if-reachable",), 0)):
        found, said = audited(tree, probe, "echo asked; exit 0", *words)
        assert (found, said.count("\n"), "not run" in said, "asked" in said) == (code, 1, True, False)


@pytest.mark.parametrize("words", [(), ("--if-reachable",)])
@pytest.mark.parametrize(("lock", "code"), [("echo clean; exit 0", 0), ("echo one 1 GHSA-x; exit 1", 1)])
def test_with_a_database_its_answer_counts(tree: Path, words: tuple[str, ...], lock: str, code: int) -> None:
    """A weakness, or a package that cannot be looked up, fails also where the database is optional."""
    found, said = audited(tree, KNOWS, lock, *words)
    assert (found, "not run" in said) == (code, False)
    assert "clean" in said or "GHSA" in said
