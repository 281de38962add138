"""`make demo` as a newcomer runs it: every statement of the reports holds, and nothing stays behind."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwaste.testing import chromium, cluster_host
from gpuwaste.testing.demo.pages import SCHEMES
from gpuwaste.testing.patience import patient


@pytest.mark.cluster
@pytest.mark.quiet
@pytest.mark.timeout(900)  # the story takes minutes
def test_the_demo_tells_the_truth_and_leaves_nothing(tmp_path: Path) -> None:
    """On a real cluster each report agrees with the load programs' logs and with sacct; only screenshots are left."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    before = set(Path("/tmp").glob("gwdemo*"))  # noqa: S108 where the demo puts its private directory
    result, pages = tmp_path / "result.json", tmp_path / "pages"
    command = [sys.executable, "-m", "gpuwaste.testing.demo", "--result", str(result), "--pages", str(pages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patient(880))
    assert result.exists(), done.stdout[-4000:] + done.stderr[-4000:]
    document = json.loads(result.read_text())
    wrong = [f"{what}: truth {truth}, said {said}" for what, truth, said, ok in document["checks"] if not ok]
    assert not wrong, f"seed {document['seed']}:\n" + "\n".join(wrong)
    assert len(document["checks"]) > 40, "every job is checked"
    whats = {what for what, *_ in document["checks"]}
    assert {"plan after the first run of the program", "an idle job goes up the ladder, each rung once"} <= whats
    assert done.returncode == 0
    assert "/enter#" in document["reports"]["alice$ gpuwaste web"]
    wanted = {f"{name}-{scheme}.png" for name in ("me", "job", "now", "comparison") for scheme in SCHEMES}
    if reason := chromium.missing():
        assert f"no screenshots: {reason}" in done.stdout
    else:
        assert {path.name for path in pages.iterdir()} == wanted, done.stdout
    assert set(Path("/tmp").glob("gwdemo*")) == before  # noqa: S108
