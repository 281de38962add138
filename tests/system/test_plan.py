"""`gpuwaste plan` on a real slurmctld: the faster valid request, what is invalid and why, and what --submit does."""

import json
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.test_estimate_times import HLO, calibrated

from gpuwaste.cli.main import main
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.running_site import Site, SiteOptions
from gpuwaste.testing.runtime import Runtime, shared_runtime

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
CONF = """AccountingStorageEnforce=associations,limits,qos
PriorityType=priority/multifactor
PriorityWeightFairShare=1000
PartitionName=one Nodes=gpu1 MaxTime=1-0 DefaultTime=10 State=UP
PartitionName=two Nodes=gpu2 MaxTime=1-0 DefaultTime=10 State=UP
PartitionName=staff Nodes=gpu2 MaxTime=1-0 DefaultTime=10 State=UP AllowAccounts=proj2
PartitionName=quick Nodes=gpu2 MaxTime=5 DefaultTime=5 State=UP
PartitionName=closed Nodes=gpu2 MaxTime=1-0 DefaultTime=10 State=UP AllowGroups=root
"""
SCRIPT = "#!/bin/bash\n#SBATCH --gres=gpu:4 --time=20 --partition=one --output=/dev/null\nsleep 300\n"
OF_TEXT = """import json, sys
from pathlib import Path
from msgspec import to_builtins
from gpuwaste.cli.planning import plan_of_text
from gpuwaste.core.config import load_config
print(json.dumps(to_builtins(plan_of_text(load_config(Path(sys.argv[1])), sys.argv[2], [], "fastest", None))))
"""


@pytest.fixture(scope="module")
def started() -> Iterator[LoopbackCluster]:
    """Start a cluster of more partitions, with a QOS that alice may use for small jobs."""
    if reason := cluster_host.missing():
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="gw", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with LoopbackCluster(Path(folder) / "c", Variant(slurm_conf=CONF), remove=True) as made:
            for words in (
                ("add", "qos", "small", "maxtresperjob=gres/gpu=1", "priority=10"),
                ("modify", "user", "alice", "set", "qos=normal,small"),
            ):
                made.run(["sacctmgr", "-i", *words])
            yield made


@pytest.fixture
def cluster(started: LoopbackCluster) -> Iterator[LoopbackCluster]:
    """Give the cluster with bob's job in partition one and nothing else."""
    busy = started.sbatch(SCRIPT, "bob", job_name="busy")
    started.wait_job(busy, "RUNNING")
    yield started
    started.cancel_jobs()


class Planner:
    """Runs `gpuwaste plan` as alice in her home."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self.cluster = cluster
        self.runtime: Runtime = shared_runtime(cluster.directory / "runtime")
        self.home = cluster.directory / "home" / "alice"
        self.config = cluster.directory / "plan.toml"
        self.config.write_text(
            f'[common]\nhub_url = "unix:/nonexistent/hub"\nslurm_conf = "{cluster.layout.slurm_conf}"\n'
        )
        self.write(SCRIPT)

    def write(self, script: str) -> None:
        """Write the script into alice's home."""
        (self.home / "job.sbatch").write_text(script)

    def run(self, *words: str) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr."""
        argv = self.runtime.command("plan", *words, "--config", str(self.config))
        done = self.cluster.run(argv, "alice", env=self.runtime.env, check=False, timeout_s=150)
        return done.returncode, done.stdout, done.stderr

    def watch(self, job: str) -> str:
        """Return the first line of --watch, and end it."""
        argv = self.runtime.command("plan", "--watch", job, "--config", str(self.config))
        watcher = self.cluster.spawn(argv, user="alice", env=self.runtime.env, name="watch")
        try:
            watcher.wait_for(lambda: "job" in watcher.tail(), 60, "a line of --watch")
            return watcher.tail()
        finally:
            watcher.stop()

    def verdicts(self) -> list[dict[str, Any]]:
        """Return what `gpuwaste policy verdicts` says to alice."""
        argv = self.runtime.command("policy", "verdicts", "--json", "--config", str(self.config))
        done = self.cluster.run(argv, "alice", env=self.runtime.env, check=False, timeout_s=150)
        found: list[dict[str, Any]] = json.loads(done.stdout)["verdicts"]
        return found

    def json(self, *words: str) -> dict[str, Any]:
        """Return the document."""
        code, out, error = self.run("--json", *words)
        assert code == 0, (out, error)
        found: dict[str, Any] = json.loads(out)
        return found


@pytest.mark.long
def test_what_an_estimate_hands_over_is_accepted(cluster: LoopbackCluster, tmp_path: Path, capsys: Any) -> None:
    """The #SBATCH lines and the command of plan that a comparison prints: Slurm takes the GPU type and the limit."""
    models = ["--models-dir", str(tmp_path / "models")]
    measured = calibrated(tmp_path / "cal", "a100-40gb", "NVIDIA A100-SXM4-40GB")
    assert main(["model", "train", "--times", str(measured), *models]) == 0
    (tmp_path / "step.hlo").write_text(HLO.format(n=1500))
    capsys.readouterr()
    words = ["--gpu", "a100,h100", "--goal", "cheapest", "--steps", "1000000", "--price", "a100=1"]
    assert main(["estimate", str(tmp_path / "step.hlo"), *words, *models, "--json"]) == 0
    choices = json.loads(capsys.readouterr().out)
    planner = Planner(cluster)
    planner.write("\n".join(["#!/bin/bash", *choices["script"], "#SBATCH --partition=two", "sleep 1", ""]))
    gpuwaste, plan, *rest = shlex.split(choices["plan"])
    assert (gpuwaste, plan) == ("gpuwaste", "plan")
    argv = planner.runtime.command("plan", "--json", "--config", str(planner.config), *rest)
    done = cluster.run(argv, "alice", env=planner.runtime.env, check=False, timeout_s=150)
    found = json.loads(done.stdout)
    asked = next(one for one in found["candidates"] if one["kind"] == "as_asked")
    best = next(row for row in choices["choices"] if row["chosen"])
    assert (done.returncode, asked["status"], asked["reasons"]) == (0, "valid", [])
    assert (asked["gpu_type"], asked["gpus"]) == ("a100", 1)
    assert best["run_high_s"] <= asked["time_limit_s"] < best["run_high_s"] + 60
    assert asked["program"]["program"] == choices["program"]["fingerprint"]
    assert asked["program"]["steps"] == 1_000_000


def test_a_script_as_text_is_planned_and_leaves_nothing(cluster: LoopbackCluster) -> None:
    """What the tool `plan` of `gpuwaste mcp` does: sbatch tests the text, nothing is submitted, no file is left."""
    planner = Planner(cluster)
    argv = [str(planner.runtime.python), "-c", OF_TEXT, str(planner.config), SCRIPT]
    done = cluster.run(argv, "alice", env={**planner.runtime.env, "TMPDIR": str(planner.home)}, timeout_s=150)
    plan = json.loads(done.stdout)
    assert (plan["script"], plan["name"], plan["user"]) == ("", "sbatch", "alice")
    assert {one["status"] for one in plan["candidates"]} >= {"valid", "invalid"}
    assert cluster.run(["squeue", "-h", "-u", "alice"]).stdout == ""
    assert list(planner.home.glob("gpuwaste-plan-*")) == []


def test_a_short_job_of_a_chain_has_advice_on_wrapping(cluster: LoopbackCluster) -> None:
    """Two queued jobs of the name, one after the other: the advice has alice's fair share; other names bring none."""
    planner = Planner(cluster)
    first = cluster.sbatch(SCRIPT, "alice", job_name="chain")
    cluster.run(["sbatch", f"--dependency=afterany:{first}", "--job-name=chain", "--time=20", "--wrap=true"], "alice")
    advice = [one for one in planner.json("--", "-J", "chain", "job.sbatch")["candidates"] if one["status"] == "advice"]
    (one,) = advice
    assert (one["kind"], one["title"]) == ("wrapped", "one job for the chain")
    assert re.search(
        r"simulated cases (at fair share [\d.]+|with an idle node), one job instead of 7 jobs of 30 min (saved|cost) ",
        one["text"],
    )
    other = planner.json("--", "-J", "other", "job.sbatch")["candidates"]
    assert "wrapped" not in {each["kind"] for each in other}
    code, out, error = planner.run("--", "-J", "chain", "job.sbatch")
    assert (code, "one job for the chain" in out) == (0, True), (out, error)


@pytest.mark.core
def test_a_plan_from_the_script_to_the_running_job(cluster: LoopbackCluster) -> None:
    """Partition one is busy for 20 min, gpu and two have a free node: --submit starts the job there, and once."""
    planner = Planner(cluster)
    plan = planner.json("-o", "job.plan", "job.sbatch")
    by_title = {one["title"]: one for one in plan["candidates"]}
    asked, chosen = by_title["as requested"], plan["candidates"][plan["chosen"] - 1]
    assert (asked["status"], *chosen["options"]) in {("valid", f"--partition={name}") for name in ("gpu", "two")}
    assert asked["slurm_start"] - chosen["slurm_start"] > 600  # what is left of bob's 20 min
    reasons = {title: " ".join(one["reasons"]) for title, one in by_title.items() if one["status"] == "invalid"}
    assert "not open to account proj1" in reasons["partition staff"]
    assert "time limit at most 5 min" in reasons["partition quick"]
    assert "open only to the groups root" in reasons["partition closed"]
    assert "at most 1 GPUs for a job" in reasons["QOS small"]
    assert cluster.run(["squeue", "-h", "-u", "alice"]).stdout == ""  # nothing is submitted unasked
    code, out, error = planner.run("--submit", "job.plan")
    assert code == 0, error
    job = int(re.findall(r"Submitted batch job (\d+)", out)[0])
    cluster.wait_job(job, "RUNNING")
    assert cluster.show_job(job)[0]["NodeList"] == "gpu2"
    assert json.loads((planner.home / "job.plan").read_text())["submitted"] == [job]
    code, _, error = planner.run("--submit", "job.plan")
    assert (code, error.count("\n")) == (2, 1)
    assert f"already submitted as job {job}" in error


def test_a_script_that_changed_is_not_submitted(cluster: LoopbackCluster) -> None:
    """Between plan and submission somebody edits the script: nothing is submitted, and one line says why."""
    planner = Planner(cluster)
    planner.json("-o", "job.plan", "job.sbatch")
    planner.write(SCRIPT + "rm -rf results\n")
    code, _, error = planner.run("--submit", "job.plan")
    assert code == 2
    assert "job.sbatch has changed since the plan was made" in error
    assert cluster.run(["squeue", "-h", "-u", "alice"]).stdout == ""


def test_a_cascade_is_submitted_as_a_chain(cluster: LoopbackCluster) -> None:
    """10 h in parts of 4 h: three jobs, each waiting for the one before it, with the signal that the plan names."""
    planner = Planner(cluster)
    planner.write(SCRIPT.replace("--time=20", "--time=10:00:00"))
    plan = planner.json("-o", "job.plan", "job.sbatch")
    number = next(one["number"] for one in plan["candidates"] if one["kind"] == "cascade")
    code, out, error = planner.run("--submit", "job.plan", "--take", str(number))
    assert code == 0, error
    jobs = [int(word) for word in re.findall(r"\d+", out.split("(")[0])]
    assert len(jobs) == 3
    shown = [cluster.show_job(job)[0] for job in jobs]
    assert [one["TimeLimit"] for one in shown] == ["04:00:00"] * 3
    assert str(jobs[0]) in shown[1]["Dependency"]
    assert str(jobs[1]) in shown[2]["Dependency"]


def test_text_and_exit_codes(cluster: LoopbackCluster, tmp_path: Path) -> None:
    """Text names the command to run; a deadline that nobody meets is code 4, a job that nobody can submit code 3."""
    planner = Planner(cluster)
    code, out, _ = planner.run("job.sbatch")
    assert code == 0
    assert re.search(r"sbatch --partition=(gpu|two) job.sbatch", out)
    assert planner.run("--deadline", "now+1minutes", "job.sbatch")[0] == 4
    planner.write(SCRIPT.replace("--time=20", "--time=9-0"))
    code, out, _ = planner.run("job.sbatch")
    assert code == 3
    assert "What you cannot submit" in out


def test_the_hub_s_interval_holds_for_the_submitted_job(cluster: LoopbackCluster, native: Path) -> None:
    """With a hub the plan has intervals for both nodes, and the job that it submits starts within its own."""
    site = Site(cluster, native, SiteOptions())
    site.prepare()
    site.start_hub()
    try:
        planner = Planner(cluster)
        planner.config = site.config_path("hub")

        def asked() -> dict[str, Any]:
            return planner.json("-o", "job.plan", "job.sbatch")

        plan: dict[str, Any] = {}

        def simulated() -> bool:
            plan.clear()
            plan.update(asked())
            return plan["candidates"][0]["start"] is not None

        wait_until(simulated, 200, "the hub to simulate the queue", lambda: str(plan.get("notes")), poll_s=2.0)
        first = plan["candidates"][0]
        chosen = plan["candidates"][plan["chosen"] - 1]
        assert first["partition"] == "one"
        assert first["start"]["p50"] > plan["at"]  # bob's job has the node
        code, out, error = planner.run("--submit", "job.plan")
        assert code == 0, error
        job = int(re.findall(r"Submitted batch job (\d+)", out)[0])
        cluster.wait_job(job, "RUNNING")
        started = int(cluster.sacct("-j", str(job), fields="Start")[0]["Start"])
        # The plan counts from when the queue was read; the seconds in which this test submitted it are its own.
        assert chosen["start"]["p10"] - 60 <= started <= chosen["start"]["p90"] + 60

        def recorded() -> list[dict[str, Any]]:
            return [row for row in planner.verdicts() if row["op"] == "plan" and row["started"] is not None]

        wait_until(lambda: bool(recorded()), 120, "the plan as the job's verdict", poll_s=2.0)
        (row,) = recorded()
        assert (row["job_ids"], row["started"], row["start_within"]) == ([str(job)], started, True)
        held = cluster.sbatch(SCRIPT, "alice", partition="one", job_name="waits")
        done = planner.watch(str(held))
        assert "expected start" in done
    finally:
        site.stop()
