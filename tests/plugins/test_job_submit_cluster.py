"""job_submit/gpuwaste in the real slurmctld, asked by sbatch, srun, salloc and scontrol, with a scripted advisor."""

import itertools
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuwaste.advice.submit_frames import encode_reply
from gpuwaste.slurm.formats.printed_run import token_of
from gpuwaste.testing import cluster_host
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_process import ClusterError, wait_until
from gpuwaste.testing.daemon_config import to_toml
from gpuwaste.testing.scripted_advisor import ScriptedAdvisor, text_of
from gpuwaste.testing.submit_plugins import build_plugins

pytestmark = [pytest.mark.core, pytest.mark.cluster, pytest.mark.timeout(300)]  # hung advisors are waited for

Say = Callable[..., None]
PATIENT_US = 5_000_000
SECOND_PERIOD_MS = 200


class Desk:
    """The cluster's advisor and what it says; each verdict has an id of its own."""

    def __init__(self, cluster: LoopbackCluster) -> None:
        self.cluster = cluster
        self.directory = cluster.directory / "site"
        self.directory.mkdir(mode=0o755, exist_ok=True)
        self.kill_switch = self.directory / "disable"
        self._ids = (f"{number:016d}" for number in itertools.count(1))
        self.given: list[str] = []
        self.say("pass")
        self.advisor: ScriptedAdvisor | None = None

    def write_config(self) -> None:
        """Write the plugin's settings where the cluster's slurmctld looks for them."""
        plugin: dict[str, Any] = {
            "kill_switch": str(self.kill_switch),
            "deadline_us": PATIENT_US,
            "breaker_first_ms": SECOND_PERIOD_MS,
            "breaker_max_ms": SECOND_PERIOD_MS,
        }
        sections = {"plugin": plugin, "advisor": {"socket": str(self.directory / "advisor.sock")}}
        (self.directory / "hub.toml").write_text(to_toml(sections))

    def say(self, action: Any, *lines: str, **options: Any) -> None:
        """Answer so from now on."""
        self._action, self._lines, self._options = action, lines, options

    def _answer(self, _: dict[str, Any]) -> bytes:
        verdict = next(self._ids)
        self.given.append(verdict)
        return encode_reply(verdict, self._action, self._lines, **{"as_of": int(time.time()), **self._options})

    def open(self) -> None:
        """Listen, and wait until slurmctld's breaker has seen it."""
        self.advisor = ScriptedAdvisor(self.directory / "advisor.sock", self._answer)
        self.advisor.__enter__()
        wait_until(self._is_asked, 60, "the plugin to ask")
        self.advisor.requests.clear()

    def _is_asked(self) -> bool:
        self.cluster.run(["sbatch", "--test-only", "--wrap=true"], "alice", check=False)
        return bool(self.requests)

    def close(self) -> None:
        """Stop listening."""
        if self.advisor is not None:
            self.advisor.close()
            self.advisor = None

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What was asked."""
        assert self.advisor is not None
        return self.advisor.requests

    def take(self) -> list[dict[str, Any]]:
        """Return what was asked since the last take."""
        taken = list(self.requests)
        self.requests.clear()
        return taken


@pytest.fixture(scope="module")
def site() -> Iterator[Desk]:
    """Start a cluster whose slurmctld has the plugin."""
    reason = cluster_host.missing()
    if reason:
        pytest.skip(reason)
    home = Path(tempfile.mkdtemp(prefix="gwp", dir="/tmp"))
    home.chmod(0o755)
    variant = Variant(job_submit="gpuwaste", plugin_dir=str(build_plugins("c")))
    with LoopbackCluster(home, variant, remove=True) as cluster:
        desk = Desk(cluster)
        desk.write_config()
        cluster.restart_slurmctld()
        yield desk
        desk.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def desk(site: Desk) -> Iterator[Desk]:
    """Return the cluster's desk with an advisor that says pass."""
    site.say("pass")
    site.open()
    yield site
    site.close()
    site.kill_switch.unlink(missing_ok=True)
    site.cluster.run(["scancel", "--user", "alice"])


def admin_comment(desk: Desk, job: int | str) -> str:
    """Return a job's admin_comment as scontrol prints it."""
    return desk.cluster.show_job(job)[0].get("AdminComment", "")


def test_job_carries_its_verdict(desk: Desk) -> None:
    """A job that passes says nothing to its user, and carries its verdict's token in slurmctld and in accounting."""
    done = desk.cluster.run(["sbatch", "--wrap=true", "--job-name=train", "--gres=gpu:1"], "alice")
    assert done.stderr == ""
    job = int(re.findall(r"\d+", done.stdout)[0])
    assert admin_comment(desk, job) == f";gw={desk.given[-1]}"
    rows = desk.cluster.wait_accounted(job)
    assert rows
    printed = desk.cluster.run(["sacct", "-nXP", "-j", str(job), "-o", "AdminComment"]).stdout.strip()
    assert token_of(printed) == desk.given[-1]


def test_request_of_sbatch(desk: Desk) -> None:
    """What a user gives to sbatch is what the advisor sees, and what he does not give is not there."""
    script = "#!/bin/bash\n#SBATCH --comment=why\necho grüße\n"
    options = ["--job-name=train", "--gres=gpu:2", "-t", "30", "--cpus-per-task=3", "-n2", "--mem=2G", "--hold"]
    desk.cluster.run(["sbatch", *options], "alice", stdin=script)
    (request,) = desk.take()
    job = request["job"]
    assert (request["op"], request["via"]) == ("submit", "c")
    assert request["slurm"] in desk.cluster.run(["sinfo", "--version"]).stdout
    assert request["uid"] == job["user_id"] == int(desk.cluster.run(["id", "-u", "alice"]).stdout)
    given = {"name": "train", "time_limit": 30, "cpus_per_task": 3, "num_tasks": 2, "mem_per_node_mb": 2048}
    assert {key: job.get(key) for key in given} == given
    assert job["comment"] == "why"
    later = {"tres_per_node": "gres/gpu:2", "tres_per_task": "cpu=3"}
    tres = {"tres_per_node": "gres:gpu:2"} if desk.cluster.release == (22, 5) else later
    assert {name: job[name] for name in later if name in job} == tres
    assert text_of(job["script"]) == script.encode()
    assert job["script_bytes"] == len(script.encode())
    absent = {
        "admin_comment",
        "qos",
        "reservation",
        "dependency",
        "array_inx",
        "time_min",
        "begin_time",
    }
    assert not absent & set(job)
    assert not {"het_job_offset", "job_id", "test_only"} & set(job)


def test_warning_at_each_terminal(desk: Desk) -> None:
    """sbatch, srun and salloc print a warning's lines, and the job is taken."""
    desk.say("warn", "gpuwaste: your last jobs used 1 of 4 GPUs", "try --gres=gpu:1")
    lines = ["gpuwaste: your last jobs used 1 of 4 GPUs", "try --gres=gpu:1"]
    commands: list[list[str]] = [["sbatch", "--wrap=true"], ["srun", "true"], ["salloc", "true"]]
    for argv in commands:
        done = desk.cluster.run(argv, "alice", timeout_s=120)
        assert [line for line in done.stderr.splitlines() if any(text in line for text in lines)] == [
            f"{argv[0]}: {line}" for line in lines
        ]


def test_refusal_at_each_terminal(desk: Desk) -> None:
    """A refused job is not queued; its user reads the reason, and Slurm's words for the code."""
    desk.say("reject", "gpuwaste: this script failed 9 of 9 times", code=2050)
    queue = ["squeue", "--noheader", "--all", "--user=alice", "--format=%i"]
    before = desk.cluster.run(queue).stdout.split()
    commands: list[list[str]] = [["sbatch", "--wrap=true"], ["srun", "true"], ["salloc", "true"]]
    for argv in commands:
        done = desk.cluster.run(argv, "alice", timeout_s=60, check=False)
        assert done.returncode != 0
        assert f"{argv[0]}: error: gpuwaste: this script failed 9 of 9 times" in done.stderr
        assert "Job violates accounting/QOS policy" in done.stderr
    assert set(desk.cluster.run(queue).stdout.split()) <= set(before)


def test_code_of_a_refusal(desk: Desk) -> None:
    """The advisor's ESLURM number decides which of Slurm's own reasons is printed."""
    desk.say("reject", "no", code=2051)
    done = desk.cluster.run(["sbatch", "--wrap=true"], "alice", check=False)
    assert "Requested time limit is invalid" in done.stderr


def test_array_is_one_question(desk: Desk) -> None:
    """An array is asked about once, and each task carries the same verdict."""
    desk.given.clear()
    job = desk.cluster.sbatch("true", array="0-4", hold=True)
    (request,) = desk.take()
    assert request["job"]["array_inx"] == "0-4"
    desk.cluster.run(["scontrol", "release", str(job)])
    desk.cluster.wait_job(job, timeout_s=120)
    tasks = desk.cluster.show_job(job)
    comments = {task["AdminComment"] for task in tasks}
    assert len(tasks) == 5
    assert comments == {f";gw={desk.given[0]}"}


def test_het_components(desk: Desk) -> None:
    """Each component of a heterogeneous job is a question of its own with its offset."""
    desk.given.clear()
    argv = ["sbatch", "--parsable", "--hold", "--gres=gpu:1", "-n1", ":", "-n2", "--wrap=true"]
    job = desk.cluster.run(argv, "alice").stdout.strip()
    assert [request["job"]["het_job_offset"] for request in desk.take()] == [0, 1]
    assert [part["AdminComment"] for part in desk.cluster.show_job(job)] == [f";gw={one}" for one in desk.given]


def test_modification(desk: Desk) -> None:
    """Scontrol update is asked about with the job's id; the token that the job has stays."""
    job = desk.cluster.sbatch("true", hold=True, t="30")
    token = admin_comment(desk, job)
    desk.take()
    desk.cluster.run(["scontrol", "update", f"JobId={job}", "TimeLimit=10"], "alice")
    (request,) = desk.take()
    assert (request["op"], request["job"]["job_id"], request["job"]["time_limit"]) == ("modify", job, 10)
    assert not {"name", "min_nodes", "admin_comment", "script", "group_id"} & set(request["job"])
    assert admin_comment(desk, job) == token


def test_modified_admin_comment(desk: Desk) -> None:
    """An operator's new admin_comment replaces the old one, and has the modification's token beside it."""
    job = desk.cluster.sbatch("true", hold=True)
    desk.cluster.run(["scontrol", "update", f"JobId={job}", "AdminComment=seen"])
    assert admin_comment(desk, job) == f"seen;gw={desk.given[-1]}"
    desk.cluster.run(["scontrol", "update", f"JobId={job}", "Comment=x"])
    assert admin_comment(desk, job) == f"seen;gw={desk.given[-2]}"


def test_refused_modification(desk: Desk) -> None:
    """A modification that is refused changes nothing."""
    job = desk.cluster.sbatch("true", hold=True, t="30")
    desk.say("reject", "no", code=2051)
    done = desk.cluster.run(["scontrol", "update", f"JobId={job}", "TimeLimit=10"], "alice", check=False)
    assert done.returncode != 0
    assert "time limit is invalid" in done.stderr
    assert desk.cluster.show_job(job)[0]["TimeLimit"] == "00:30:00"


def test_time_min(desk: Desk) -> None:
    """A minimum time limit that the advisor gives is the job's; its limit is not changed."""
    desk.say("annotate", time_min=5)
    job = desk.cluster.show_job(desk.cluster.sbatch("true", hold=True, t="30"))[0]
    assert (job["TimeMin"], job["TimeLimit"]) == ("00:05:00", "00:30:00")


def test_user_cannot_bring_a_token(desk: Desk) -> None:
    """Slurm refuses a user's own admin_comment; root's loses the token of another job."""
    forged = "note;gw=ffffffffffffffff"
    argv = ["sbatch", "--parsable", "--hold", f"--admin-comment={forged}", "--wrap=true"]
    done = desk.cluster.run(argv, "alice", check=False)
    if "unrecognized option" in done.stderr:
        job = desk.cluster.sbatch("true", hold=True)
        refused = desk.cluster.run(
            ["scontrol", "update", f"JobId={job}", f"AdminComment={forged}"], "alice", check=False
        )
        assert refused.returncode != 0
        desk.cluster.run(["scontrol", "update", f"JobId={job}", f"AdminComment={forged}"])
    else:
        assert done.returncode != 0
        job = int(desk.cluster.run(argv, "root").stdout)
    assert admin_comment(desk, job) == f"note;gw={desk.given[-1]}"


def test_test_only(desk: Desk) -> None:
    """Sbatch --test-only is scored and known as such; its warning reaches the user and no job is made."""
    desk.say("warn", "less would do")
    done = desk.cluster.run(["sbatch", "--test-only", "--wrap=true"], "alice", check=False)
    (request,) = desk.take()
    assert request["job"]["test_only"] is True
    assert "less would do" in done.stderr
    desk.cluster.sbatch("true --test-only", hold=True)
    assert "test_only" not in desk.take()[0]["job"]
    desk.cluster.run(["sbatch", "--hold", "--comment=gpuwaste:override=x --test-only", "--wrap=true"], "alice")
    assert "test_only" not in desk.take()[0]["job"]


def test_kill_switch(desk: Desk) -> None:
    """While the kill switch is there nothing is asked and jobs carry nothing; without it all is as before."""
    desk.say("reject", "no")
    desk.kill_switch.touch()
    job = desk.cluster.sbatch("true", hold=True)
    assert (desk.take(), admin_comment(desk, job)) == ([], "")
    desk.kill_switch.unlink()
    assert desk.cluster.run(["sbatch", "--wrap=true"], "alice", check=False).returncode != 0


def test_no_advisor_at_all(desk: Desk) -> None:
    """Without a socket every job is taken and says nothing; once the advisor is back its counters tell of it."""
    desk.close()
    for _ in range(6):
        done = desk.cluster.run(["sbatch", "--hold", "--wrap=true"], "alice")
        assert done.stderr == ""
    desk.open()
    desk.cluster.sbatch("true", hold=True)
    counters = desk.take()[-1]["counters"]
    assert counters["missed"] >= 3
    assert counters["opened"] >= 1
    assert counters["asked"] > counters["answered"]


def test_stale_history(desk: Desk) -> None:
    """A refusal that rests on an old history is a pass; the token is there for the audit."""
    desk.say("reject", "no", as_of=1_000_000_000)
    job = desk.cluster.sbatch("true", hold=True)
    assert admin_comment(desk, job) == f";gw={desk.given[-1]}"


def test_hostile_descriptions(desk: Desk) -> None:
    """Control characters, invalid UTF-8 and texts at Slurm's limits reach the advisor whole and harm nobody."""
    name = os.fsdecode(b"\xff\x01\x1b[2J" + b"n" * 1000)
    comment = os.fsdecode(b"\xc3(" + b"\x02" * 1000)
    desk.cluster.run(["sbatch", "--hold", f"--job-name={name}", f"--comment={comment}", "--wrap=true"], "alice")
    (request,) = desk.take()
    assert text_of(request["job"]["comment"]) == os.fsencode(comment)
    assert text_of(request["job"]["name"]).startswith(b"\xff\x01\x1b[2Jnnn")


def test_slurmctld_stays_and_reconfigures(desk: Desk) -> None:
    """Scontrol reconfigure keeps the plugin and its settings, and slurmctld's process is the same throughout."""
    pid = desk.cluster.processes["slurmctld"].pid
    desk.cluster.run(["scontrol", "reconfigure"])
    wait_until(lambda: desk.cluster.run(["scontrol", "ping"]).returncode == 0, 30, "slurmctld to answer")
    desk.take()
    desk.cluster.sbatch("true", hold=True)
    assert len(desk.take()) == 1
    assert desk.cluster.processes["slurmctld"].pid == pid
    assert desk.cluster.processes["slurmctld"].alive()


def test_plugin_of_another_release_is_refused(make_cluster: Callable[..., LoopbackCluster], tmp_path: Path) -> None:
    """A plugin built for another release than slurmctld's, even a patch release, is not loaded; the log says why."""
    include = tmp_path / "include"
    shutil.copytree("/usr/include/slurm", include / "slurm")
    version = include / "slurm" / "slurm_version.h"
    version.write_text(re.sub(r"(SLURM_VERSION_NUMBER 0x\w{4})\w\w", r"\g<1>63", version.read_text()))
    folder = Path(tempfile.mkdtemp(prefix="gwo", dir="/tmp"))
    folder.chmod(0o755)
    build_plugins("c", out=folder, slurm_include=include)
    cluster = make_cluster(Variant(job_submit="gpuwaste", plugin_dir=str(folder)), start=False)
    with pytest.raises(ClusterError):
        cluster.start()
    shutil.rmtree(folder)
    log = (cluster.directory / "log" / "slurmctld.log").read_text()
    assert re.search(r"Incompatible Slurm plugin \S*job_submit_gpuwaste.so version \(\d+\.\d+\.99\)", log)
