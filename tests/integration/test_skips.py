"""In CI a test is skipped for a known reason alone."""

import subprocess
import sys
from pathlib import Path

from gpuwaste.testing.patience import patient

ROOT = Path(__file__).parents[2]
SKIPPING = '''"""Skips."""
import pytest


@pytest.mark.skipif(True, reason="no such server is installed")
def test_one():
    """Skip by a mark."""

def test_two():
    """Skip in its body."""
    pytest.skip("no GPU on this host")
'''


def outcome(tmp_path: Path, reasons: str) -> str:
    """Run two tests that skip, with these reasons allowed; return pytest's last line."""
    allowed, tests = tmp_path / "skips", tmp_path / "test_skipping.py"
    allowed.write_text(reasons)
    tests.write_text(SKIPPING)
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "durations.json").write_text("{}")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  sockets: x\n  rest_clusters: x\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini", str(tests)]
    env = {"GPUWASTE_SKIPS": str(allowed), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=patient(120), check=False
    )
    return done.stdout + done.stderr


def test_an_unknown_reason_is_a_failure(tmp_path: Path) -> None:
    """A skip by mark or in the test's body fails where its reason is not in the file, and names the file."""
    said = outcome(tmp_path, "# none\nno GPU\n")
    assert "1 skipped, 1 error" in said, said
    assert "no such server is installed): " in said


def test_known_reasons_are_skips(tmp_path: Path) -> None:
    """Where the file has both reasons nothing fails."""
    assert "2 skipped" in outcome(tmp_path, "no GPU\nno such server\n")
