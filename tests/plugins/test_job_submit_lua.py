"""The Lua shim in the real slurmctld, under a job_submit.lua as the documentation gives it."""

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.lua_side import EXAMPLE, INTERPRETERS, TOKEN, build, say, write_settings

from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import wait_until
from gpuwaste.testing.scripted_advisor import ScriptedAdvisor
from gpuwaste.testing.submit_plugins import build_plugins

pytestmark = pytest.mark.cluster
SCRIPT = "#!/bin/bash\nexit 0\n"


class Controller:
    """A cluster whose slurmctld runs job_submit plugins, and the advisor of its socket."""

    def __init__(self, cluster: LoopbackCluster, built: Path) -> None:
        self.cluster, self.built = cluster, built
        self.site = cluster.directory / "site"
        self.site.mkdir(mode=0o755, exist_ok=True)
        self.script = cluster.layout.slurm_conf.with_name("job_submit.lua")
        self.example = (
            EXAMPLE.read_text()
            .replace("/usr/share/gpuwaste/lua", str(built))
            .replace("/usr/lib/gpuwaste/lua", str(built))
        )

    def start(self) -> None:
        """Let slurmctld load the example."""
        self.script.write_text(self.example)
        write_settings(self.site).rename(self.site / "hub.toml")
        self.load("lua")

    def edit(self, text: str) -> None:
        """Change the script as a site's administrator does: not in the second in which slurmctld read it last."""
        began = int(time.time())
        wait_until(lambda: time.time() > began + 1, 5, "the next second")
        self.script.write_text(text)

    def load(self, plugins: str) -> None:
        """Restart slurmctld with these job_submit plugins."""
        conf = self.cluster.layout.slurm_conf
        kept = [line for line in conf.read_text().splitlines() if not line.startswith("JobSubmitPlugins=")]
        conf.write_text("\n".join([*kept, f"JobSubmitPlugins={plugins}", ""]))
        self.cluster.restart_slurmctld()

    @property
    def pid(self) -> int:
        """The process of slurmctld that answers."""
        process = self.cluster.processes["slurmctld"]
        assert process.alive()
        return process.pid

    @property
    def log(self) -> str:
        """What slurmctld logged so far."""
        return (self.cluster.directory / "log" / "slurmctld.log").read_text(errors="replace")

    def sbatch(self, *options: str, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
        """Submit a held job as alice; the outcome is the caller's to judge."""
        return self.cluster.run(["sbatch", "--parsable", "-H", *options], "alice", stdin=script, check=False)

    def job(self, done: subprocess.CompletedProcess[str]) -> dict[str, str]:
        """Return the record of a job that must have been accepted."""
        assert done.returncode == 0, done.stderr
        return self.cluster.show_job(done.stdout.strip())[0]


@pytest.fixture(scope="module")
def module_cluster() -> Iterator[LoopbackCluster]:
    """Start a cluster that is this file's own: its slurmctld is restarted and its slurm.conf changed."""
    reason = cluster_host.missing()
    if reason:
        pytest.skip(reason)
    directory = Path(tempfile.mkdtemp(prefix="gw", dir="/tmp"))
    directory.chmod(0o755)
    with LoopbackCluster(directory, Variant(prolog=(), epilog=()), remove=True) as cluster:
        yield cluster
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def controller(module_cluster: LoopbackCluster) -> Controller:
    """Start one cluster for this file; it is reset to the example before each test."""
    include = INTERPRETERS["5.1"][1]
    if not Path(include, "lua.h").exists():
        pytest.skip("Lua 5.1's headers are not installed (tools/install-debian-packages)")
    built = build(module_cluster.directory / "shim", include)  # where slurmctld's own user can read it
    made = Controller(module_cluster, built)
    made.start()
    return made


@pytest.fixture
def advisor(controller: Controller) -> Iterator[ScriptedAdvisor]:
    """Start an advisor that lets everything pass, and close whatever breaker stands open."""
    with ScriptedAdvisor(controller.site / "advisor.sock", say("pass")) as scripted:

        def asked() -> bool:
            controller.job(controller.sbatch())
            return bool(scripted.requests)

        wait_until(asked, 60, "the breaker to close", poll_s=0.2)
        scripted.requests.clear()
        yield scripted
    controller.cluster.cancel_jobs()


def test_a_pass_is_silent(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """The user sees what he sees without us; the job carries the verdict's token."""
    done = controller.sbatch("--gres=gpu:1", "-J", "train")
    assert done.stderr == ""
    assert controller.job(done)["AdminComment"] == f";gw={TOKEN}"
    request = advisor.requests[0]
    assert (request["via"], request["op"], request["job"]["name"]) == ("lua", "submit", "train")
    assert re.fullmatch(r"\d\d\.\d\d\.\d+", request["slurm"])


def test_an_annotation_is_silent(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """As a pass."""
    advisor.answer = say("annotate", "not to be seen")
    assert controller.sbatch().stderr == ""


def test_a_warning_reaches_the_terminal(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """Of sbatch and of srun; the job is queued."""
    advisor.answer = say("warn", "your last 14 jobs used 1 of 4 GPUs", "try --gres=gpu:1")
    done = controller.sbatch()
    assert "your last 14 jobs used 1 of 4 GPUs\n" in done.stderr
    assert "try --gres=gpu:1" in done.stderr
    assert controller.job(done)["JobState"] == "PENDING"
    srun = controller.cluster.run(["srun", "--immediate=10", "-p", "cpu", "true"], "alice", check=False)
    assert srun.returncode == 0, srun.stderr
    assert "try --gres=gpu:1" in srun.stderr


def test_a_rejection_says_why(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """The reason and Slurm's own text of the code; nothing is queued."""
    advisor.answer = say("reject", "this job failed 9 times")
    done = controller.sbatch()
    assert done.returncode != 0
    assert "this job failed 9 times" in done.stderr
    assert "accounting/QOS policy" in done.stderr
    advisor.answer = say("reject", "no", code=2051)
    assert "accounting/QOS policy" not in controller.sbatch().stderr


def test_arrays_come_once_and_het_components_each(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """One request for an array; one for each component, with its offset."""
    controller.job(controller.sbatch("--array=0-9"))
    assert [request["job"].get("array_inx") for request in advisor.requests] == ["0-9"]
    advisor.requests.clear()
    controller.job(controller.sbatch("-n1", ":", "-n2"))
    assert [request["job"]["het_job_offset"] for request in advisor.requests] == [0, 1]


def test_a_modification_is_asked_about_and_keeps_the_token(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """The job's owner may change it under a verdict; its admin_comment stays; a rejection keeps the old limit."""
    job = controller.job(controller.sbatch("-t", "20"))
    advisor.requests.clear()
    update = ["scontrol", "update", f"jobid={job['JobId']}"]
    controller.cluster.run([*update, "timelimit=10"], "alice")
    request = advisor.requests[0]
    assert (request["op"], request["job"]["job_id"]) == ("modify", int(job["JobId"]))
    assert request["job"]["time_limit"] == 10
    assert controller.cluster.show_job(job["JobId"])[0]["AdminComment"] == f";gw={TOKEN}"
    advisor.answer = say("reject", "no")
    assert controller.cluster.run([*update, "timelimit=5"], "alice", check=False).returncode != 0
    assert controller.cluster.show_job(job["JobId"])[0]["TimeLimit"] == "00:10:00"


def test_time_min_is_set_where_the_advisor_says_so(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """The limit that the user gave stays."""
    advisor.answer = say("annotate", time_min=7)
    job = controller.job(controller.sbatch("-t", "20"))
    assert (job["TimeLimit"], job["TimeMin"]) == ("00:20:00", "00:07:00")


def test_without_an_advisor_every_job_is_queued(controller: Controller) -> None:
    """Nobody listens: no message, no delay to speak of, the same slurmctld afterwards."""
    pid = controller.pid
    for _ in range(6):
        done = controller.sbatch()
        assert (done.returncode, done.stderr) == (0, "")
    assert controller.pid == pid
    controller.cluster.cancel_jobs()


def test_an_edit_of_the_script_keeps_breaker_and_counters(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """Slurm loads the script anew in a new Lua state; the client behind it goes on counting."""
    controller.job(controller.sbatch())
    before = advisor.requests[-1]["counters"]["asked"]
    edited = controller.example.replace("-- The site's own rules", 'slurm.log_info("%s", "edited")\n  -- The rules')
    controller.edit(edited)

    def loaded() -> bool:
        controller.job(controller.sbatch())
        return "lua: edited" in controller.log

    wait_until(loaded, 60, "slurmctld to load the script anew", poll_s=1)
    assert advisor.requests[-1]["counters"]["asked"] > before
    controller.edit(controller.example)


BROKEN = {
    "module raises": "error('boom')",
    "functions raise": "return {submit = function() error('boom') end, modify = function() error({}) end}",
    "no module": None,
}


@pytest.mark.parametrize("what", sorted(BROKEN))
def test_a_broken_module_costs_no_job(controller: Controller, advisor: ScriptedAdvisor, what: str) -> None:
    """The example goes on without it: jobs are accepted, slurmctld lives."""
    folder = controller.cluster.directory / "site" / what.replace(" ", "-")
    folder.mkdir()
    text = BROKEN[what]
    if text is not None:
        (folder / "gpuwaste.lua").write_text(text)
    pid = controller.pid
    controller.edit(controller.example.replace(str(controller.built), str(folder)) + "-- broken\n")

    def silent() -> bool:
        advisor.requests.clear()
        done = controller.sbatch()
        assert (done.returncode, done.stderr) == (0, "")
        return not advisor.requests

    wait_until(silent, 60, "slurmctld to load the broken module", poll_s=1)
    assert controller.pid == pid
    controller.edit(controller.example)


def test_an_error_inside_the_module_costs_no_job(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """The helper raises at each call: the shim logs it once and the job is accepted."""
    poison = 'package.loaded.gpuwaste_core = {version = 1, ask = function() error("poisoned") end}\n'
    controller.edit(poison + controller.example)
    pid = controller.pid

    def poisoned() -> bool:
        done = controller.sbatch()
        assert (done.returncode, done.stderr) == (0, "")
        return "poisoned" in controller.log

    wait_until(poisoned, 60, "slurmctld to load the poisoned script", poll_s=1)
    assert controller.pid == pid
    controller.edit(controller.example)
    assert advisor.path.exists()


OPTIONS = [
    ["-J", "train", "-A", "proj1", "-p", "gpu", "-t", "0:30:00", "--gres=gpu:2", "--mem=2G", "-c", "2"],
    ["-N", "1-2", "-n", "4", "--gpus=2", "--mem-per-cpu=100", "--cpus-per-gpu=2", "--comment=gpuwaste:override=X"],
    ["--gpus-per-task=1", "-n", "2", "--mem-per-gpu=100", "--array=0-3", "-C", "", "--exclusive", "--begin=now+1hour"],
    ["--gpus-per-node=1", "--ntasks-per-node=2", "-N", "2", "-t", "UNLIMITED", "--time-min=5", "--mincpus=2"],
    ["--gpus-per-socket=1", "--sockets-per-node=1", "-d", "singleton", "--oversubscribe", "--mem=0", "-p", "gpu,whole"],
]


def test_the_c_plugin_sends_the_same(controller: Controller, advisor: ScriptedAdvisor) -> None:
    """Field for field, for sbatch lines with every kind of request; the order and the counters aside."""
    told: dict[str, list[dict[str, Any]]] = {}
    build_plugins("c", out=controller.built)
    conf = controller.cluster.layout.slurm_conf
    conf.write_text(conf.read_text() + f"PluginDir={controller.built}:/usr/lib/x86_64-linux-gnu/slurm-wlm\n")
    try:
        for plugin in ("gpuwaste", "lua"):
            controller.load(plugin)
            advisor.requests.clear()
            for options in OPTIONS:
                controller.sbatch(*options)
            told[plugin] = [request["job"] for request in advisor.requests]
    finally:
        controller.load("lua")
    for number, options in enumerate(OPTIONS):
        for job in (told["gpuwaste"][number], told["lua"][number]):
            job.pop("begin_time", None)  # one second may pass between the two
        assert told["lua"][number] == told["gpuwaste"][number], options
    assert "tres_per_socket" in told["lua"][4]
    assert told["lua"][3]["time_limit"] == "infinite"
