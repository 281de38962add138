"""On a busy host a test may take longer: the limits after which it counts as hung grow with $GPUWASTE_TEST_PATIENCE."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMITED = '''"""A test with a limit."""
import pytest

@pytest.mark.timeout(10)
def test_one(request):
    """The limit is three times what the mark says."""
    assert request.node.get_closest_marker("timeout").args == (30.0,)
'''


def test_the_limit_of_a_test_grows_with_patience(tmp_path: Path) -> None:
    """A mark of 10 s is one of 30 s where all may take three times as long."""
    (tmp_path / "test_limited.py").write_text(LIMITED)
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "durations.json").write_text("{}")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "pytest.ini", "test_limited.py"]
    env = {"GPUWASTE_TEST_PATIENCE": "3", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
