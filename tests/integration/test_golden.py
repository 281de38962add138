"""No answer has changed: documents, pages, commands and mails of a made site are what tests/golden/answers.xz keeps."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ANSWERS = ROOT / "tests/golden/answers.xz"
pytestmark = [pytest.mark.long, pytest.mark.timeout(1860)]


def test_no_answer_has_changed() -> None:
    """A hub of its own process is asked everything again; what differs is printed with its name."""
    command = [sys.executable, "-m", "tools.golden", "--compare", str(ANSWERS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-4000:]}"
