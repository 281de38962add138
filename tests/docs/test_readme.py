"""The README: its commands run as written, in order, and its report is what the renderer prints."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gpuwaste.advice.adviser import NothingSpent
from gpuwaste.advice.policy.policy_case import Expectation, SubmissionFacts, Suggestion
from gpuwaste.advice.policy.policy_loading import load_policies
from gpuwaste.slurm.submit.job_request import JobRequest
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.running_site import Site
from gpuwaste.testing.simnvml import build_native, library_env

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXEMPT = {
    "make demo": "tests/system/test_demo.py runs it; it starts a cluster of its own",
}
NODE = "gpu1"
PORTS = (9460, 9461)  # the defaults, which the README keeps


def blocks(kind: str) -> list[str]:
    """Return the README's fenced blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_the_report_is_a_real_one() -> None:
    """The report in the README is, line by line, the golden text of the renderer's own test."""
    golden = (ROOT / "tests/unit/show/golden/job.txt").read_text(encoding="utf-8")
    assert blocks("text") == [golden]
    assert max(len(line) for line in golden.splitlines()) <= 80


def test_what_sbatch_says_is_what_the_policy_says(tmp_path: Path) -> None:
    """The lines at the README's terminal are, word by word, those of a policy that warns of unused GPUs."""
    (tmp_path / "warn.toml").write_text('[policy]\nmode = "warn"\n[targets.gpus]\nwarn = 0.5\n', encoding="utf-8")
    why = ("your last 14 jobs named train used 1 of 4 GPUs",)
    facts = SubmissionFacts(
        JobRequest("alice", 0, name="train", gpus=4),
        local_time=datetime.fromtimestamp(0, UTC),
        expected=(Expectation("gpus_needed", "history", 14, quantiles={"0.5": 1.0}, why=why),),
        suggestions=(Suggestion("gpus", "--gres=gpu:a100:1", "", 3),),
        last_job=4698,
    )
    said = load_policies(tmp_path).decide(facts, NothingSpent(), lambda: 1.0)
    assert said.action == "warn"
    (block,) = blocks("console")
    shown = [line.removeprefix("sbatch: ") for line in block.splitlines() if line.startswith("sbatch: ")]
    assert shown == list(said.lines)


@pytest.fixture
def private() -> Iterator[Path]:
    """Give an empty folder that every user may enter, and remove it."""
    folder = Path(tempfile.mkdtemp(prefix="gwhost", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.cluster
@pytest.mark.timeout(400)  # builds, daemons, and jobs until there is a report
def test_its_commands_run_as_written(cluster: LoopbackCluster, private: Path) -> None:
    """All shell blocks but the exempt commands, as one root shell's input, end well and print a report."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this host gives no mount namespace: the README's commands would change its /etc")
    taken = [port for port in PORTS if cluster_host.accepts(("127.0.0.1", port))]
    if taken:
        pytest.skip(f"something listens on port {taken[0]} of this host, as the README's hub and agent do")
    cluster.reset()
    site = Site(cluster, build_native())
    site.prepare()
    lines = [line for block in blocks("sh") for line in block.splitlines() if line not in EXEMPT]
    # As at a terminal: stop at the first error, end what was started in the background.
    script = "\n".join(["set -e", "trap 'code=$?; jobs -p | xargs -r kill; wait; exit $code' EXIT", *lines])
    environment = {
        **site.nodes[NODE].env,
        **library_env(site.native),
        "PRIVATE": str(private),
        "SITE_SLURM_CONF": str(cluster.layout.slurm_conf),
        "SITE_MUNGE_SOCKET": str(cluster.nodes[NODE].munge_socket),
        "HOME": str(Path.home()),
    }
    wheels = ROOT / "build/pip"
    if wheels.is_dir():  # a worker has no network; make test-all fetches before
        environment |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    argv = ["unshare", "--mount", str(ROOT / "tests/docs/private_host.sh"), "bash", "-c", f"cd {ROOT}\n{script}"]
    done = cluster.run(argv, env=environment, timeout_s=350, check=False)
    cluster.reset()
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "GPU use of user root" in done.stdout, done.stdout
