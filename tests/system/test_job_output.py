"""What a job prints is what its program wrote, whatever of ours starts, is killed, restarts or asks meanwhile."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.system.asking import filtered, metric, until
from tests.system.conftest import SiteFactory
from tests.system.submit_scene import slurm_version

from gpuwaste.slurm.formats.list_conf import release_of
from gpuwaste.testing.cluster import LoopbackCluster
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.running_site import Site

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]  # a site, three starts of an agent, a dozen commands
_HOLDER = "gpuwaste_gpu_job_info"
_TOUCHES_SINCE = (23, 11)
"""Since this release a slurmd that starts sends its logging to every step of its spool directory."""
_SCRIPT = """#!/bin/bash
echo "batch begins"
srun --ntasks=1 --gres=gpu:1 bash -c '
  echo "step begins"; echo "step warns" >&2; touch {flag}.runs
  until [ -e {flag} ]; do sleep 0.2; done
  echo "step ends"'
echo "batch ends"
"""
_WRITTEN = "batch begins\nstep begins\nstep warns\nstep ends\nbatch ends\n"


@dataclass
class Job:
    """A batch job with a step, both on one node, that run until they are told to end."""

    cluster: LoopbackCluster
    number: int
    flag: Path
    output: Path

    def end(self) -> bytes:
        """Let it end by itself and return what its output file holds."""
        self.flag.touch()
        assert self.cluster.wait_job(self.number) == ["COMPLETED"]
        return self.output.read_bytes()


@pytest.fixture
def site(cluster: LoopbackCluster, make_site: SiteFactory) -> Site:
    """Return a site with its hub."""
    site = make_site(cluster)
    site.start_hub()
    return site


@pytest.fixture
def job(site: Site, tmp_path: Path) -> Job:
    """Start the job on the first node with GPUs and wait until its step runs; no agent does."""
    cluster = site.cluster
    home = cluster.directory / "home" / "alice"
    flag, output = home / f"{tmp_path.name}.go", home / f"{tmp_path.name}.out"
    script = _SCRIPT.format(flag=flag)
    number = cluster.sbatch(script, "alice", w=_node(cluster), gres="gpu:1", output=str(output))
    wait_until(Path(f"{flag}.runs").exists, 60, "the step to run", lambda: str(cluster.show_job(number)))
    return Job(cluster, number, flag, output)


def _node(cluster: LoopbackCluster) -> str:
    return next(name for name, node in cluster.nodes.items() if node.minors)


def test_a_job_s_output_holds_what_its_program_wrote(site: Site, job: Job) -> None:
    """Byte for byte, while an agent as its unit filters it starts, is killed and stopped, and users and root ask."""
    node = _node(site.cluster)
    for end, user in (("kill", "alice"), ("stop", "bob"), ("stop", "root")):
        agent = site.start_agent(node, prefix=filtered(site, "agent"))
        until(lambda: metric(site, node, _HOLDER) == [1.0], "the job's GPU to be attributed", timeout_s=60)
        _ask(site, node, job.number, user)
        getattr(agent, end)()
    for user in ("alice", "bob", "root"):
        _read_list(site, node, user)
    assert job.end() == _WRITTEN.encode()


def test_a_plain_list_of_slurmd_writes_into_the_job_s_output(site: Site, job: Job) -> None:
    """What the test above compares is what such a call changes, on each release that has that fault and on no other."""
    plain = ["slurmd", "-G", "-N", _node(site.cluster)]
    site.cluster.run(plain, "bob", node=_node(site.cluster), check=False)
    written = job.end()
    if (release_of(slurm_version()) or _TOUCHES_SINCE) < _TOUCHES_SINCE:
        assert written == _WRITTEN.encode()
        return
    lines = written.decode().splitlines(keepends=True)
    assert "".join(line for line in lines if "error: " not in line) == _WRITTEN
    assert len(lines) > _WRITTEN.count("\n"), written


def _ask(site: Site, node: str, job: int, user: str) -> None:
    """Run each command that looks at a running job, and as the agent's user those that look at a node."""
    for words in (["job", str(job)], ["now", "--hours", "1"], ["report"]):
        assert "Traceback" not in site.gpuwaste(*words, user=user, check=False).stderr
    config = ["--config", str(site.config_path(node))]
    for words in (["doctor", "--role", "agent"], ["agent", "status"]):
        argv = site.runtime.command(*words, *config)
        done = site.cluster.run(argv, "gpuwaste", node=node, env=site.runtime.env, check=False, timeout_s=60)
        assert done.stdout, done.stderr


def _read_list(site: Site, node: str, user: str) -> None:
    """Read the node's list of GPUs as an agent of that user would; its order is that of gres.conf."""
    program = (
        "import sys; from gpuwaste.slurm.clients.command_client import CommandClient\n"
        "print([device.minor for device in CommandClient().device_list(sys.argv[1])])"
    )
    argv = [str(site.runtime.python), "-c", program, node]
    printed = site.cluster.run(argv, user, node=node, env=site.runtime.env).stdout
    assert printed == f"{list(site.cluster.nodes[node].minors)}\n"
