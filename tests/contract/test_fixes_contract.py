"""What findings propose, given to Slurm itself: lines of the script to sbatch, commands to the cluster."""

import re
import shlex

import pytest
from tests.unit.ledger.fix_cases import findings, runs, small_jobs

from gpuwaste.ledger.finding import DIRECTIVE, Fix
from gpuwaste.testing.cluster import LoopbackCluster

pytestmark = pytest.mark.cluster


def proposals() -> list[Fix]:
    """Return everything that any finding proposes, once."""
    found = [findings(ledger) for _, ledger in runs()] + [findings(*small_jobs())]
    fixes = [fix for several in found for finding in several for fix in finding.fixes if fix.lines]
    return list({fix.lines: fix for fix in fixes}.values())


def test_sbatch_takes_what_is_proposed(cluster: LoopbackCluster) -> None:
    """With the proposed lines in a job's script sbatch --test-only says when the job would start."""
    asked = [fix.lines for fix in proposals() if fix.lines[0].startswith(DIRECTIVE)]
    assert len(asked) > 8
    path = cluster.directory / "proposed.sh"
    refused = []
    for lines in asked:
        path.write_text("\n".join(("#!/bin/bash", "#SBATCH --time=10 --nodes=1", *lines, "sleep 1", "")))
        path.chmod(0o755)
        done = cluster.run(["sbatch", "--test-only", str(path)], "alice", check=False)
        if done.returncode or "to start at" not in done.stderr:
            refused.append(f"{lines}: {done.stderr.strip()}")
    assert not refused, "\n".join(refused)


def test_the_commands_work_as_they_stand(cluster: LoopbackCluster) -> None:
    """In a running job's allocation the command lists its processes; the other lists what the cluster has."""
    commands = {line for fix in proposals() for line in fix.lines if not line.startswith(DIRECTIVE)}
    assert {line.split()[0] for line in commands} == {"srun", "sinfo"}
    job = cluster.sbatch("sleep 300", gres="gpu:1")
    cluster.wait_job(job, "RUNNING")
    try:
        for line in commands:
            here = re.sub(r"--jobid=\d+ ", f"--jobid={job} ", line).replace("-w gpu1 ", f"-w {node_of(cluster, job)} ")
            done = cluster.run(shlex.split(here.replace("$USER", "alice")), "alice", check=False)
            assert done.returncode == 0, f"{here}: {done.stderr}"
            assert "sleep 300" in done.stdout or "gpu:" in done.stdout
    finally:
        cluster.run(["scancel", str(job)])


def node_of(cluster: LoopbackCluster, job: int) -> str:
    """Return the node of a running job."""
    (record,) = cluster.show_job(job)
    return record["NodeList"]
