"""`make demo-all` as a newcomer runs it: every statement of the reports holds, and nothing stays behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwaste.testing import chromium, cluster_host
from gpuwaste.testing.demo.pages import SCHEMES
from gpuwaste.testing.patience import patient

ALICE = ("1. What did alice waste?", "2. What does her page show?", "3. What does sbatch print?")


@pytest.mark.cluster
@pytest.mark.quiet
@pytest.mark.timeout(900)  # the story takes minutes
def test_the_demo_tells_the_truth_and_leaves_nothing(tmp_path: Path) -> None:
    """On a real cluster each report agrees with the load programs' logs and with sacct; only pages are left.

    Its first part, until alice's waste, page and advice are printed, is what `make demo` runs.
    """
    if reason := cluster_host.missing():
        pytest.skip(reason)
    before = set(Path("/tmp").glob("gwdemo*"))  # noqa: S108 where the demo puts its private directory
    result, pages = tmp_path / "result.json", tmp_path / "pages"
    command = [sys.executable, "-m", "gpuwaste.testing.demo", "--all", "--result", str(result), "--pages", str(pages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(880))
    assert result.exists(), done.stdout[-4000:] + done.stderr[-4000:]
    document = json.loads(result.read_text())
    wrong = [f"{what}: measured {truth}, reported {said}" for what, truth, said, ok in document["checks"] if not ok]
    assert not wrong, f"seed {document['seed']}:\n" + "\n".join(wrong)
    assert len(document["checks"]) >= 80, "every job is checked"
    whats = {what for what, *_ in document["checks"]}
    assert {"plan after the first run of the program", "rules for an idle job, once each"} <= whats
    assert done.returncode == 0
    assert [line for line in done.stdout.splitlines() if line in ALICE] == list(ALICE)
    assert max(map(len, done.stdout.partition("reported by gpuwaste")[2].splitlines()[1:-1])) <= 100, "the table"
    assert "/enter#" in document["reports"]["alice$ gpuwaste web"]
    wanted = {"alice.html"}
    if reason := chromium.missing():
        assert f"no screenshots: {reason}" in done.stdout
    else:
        wanted |= {f"{name}-{scheme}.png" for name in ("me", "job", "now", "comparison") for scheme in SCHEMES}
    assert {path.name for path in pages.iterdir()} == wanted, done.stdout
    assert set(Path("/tmp").glob("gwdemo*")) == before  # noqa: S108
