"""What the plugin sends for a fixed list of lines: the same request on every release, however each spells it.

The comparison is made when all columns are there (tools.matrix.compare); here each line must be a request at all.
"""

from typing import Any, Final

from gpuwaste.slurm.submit.job_desc import read_job_desc
from tools.matrix.rig import Rig, expect, says

NAME: Final = "requests of a fixed list"
JOB_SUBMIT: Final = "gpuwaste"
LINES: Final[tuple[tuple[str, ...], ...]] = (
    (),
    ("--gres=gpu:2",),
    ("--gres=gpu:a100:1", "--time=1-02:00:00"),
    ("--gpus=3", "--cpus-per-gpu=2", "--mem-per-gpu=4G"),
    ("--gpus-per-node=a100:2", "--nodes=2"),
    ("--gpus-per-task=1", "--ntasks=2"),
    ("--ntasks=4", "--cpus-per-task=2", "--mem-per-cpu=2G"),
    ("--nodes=2", "--ntasks-per-node=2", "--mem=8G", "--time-min=30", "--time=90"),
    ("--partition=whole", "--gpus-per-node=4", "--exclusive"),
    ("--array=1-9%3", "--gres=gpu:1", "--comment=gpuwaste:override=deadline"),
    ("--begin=now+1hour", "--time=UNLIMITED", "--partition=gpu,cpu"),
    ("--qos=normal", "--account=proj1", "--dependency=singleton"),
)


def run(rig: Rig) -> None:
    """Submit each line, held, and keep the request."""
    with rig.advisor(says("pass")) as advisor:
        for number, options in enumerate(LINES):
            advisor.requests.clear()
            line = " ".join(options) or "(no options)"
            job = rig.accepted("--hold", f"--job-name=line{number}", *options)
            expect(len(advisor.requests) == 1, f"{line}: asked {len(advisor.requests)} times")
            rig.requests[line] = _stable(advisor.requests[0])
            _as_slurm_counts(line, rig.requests[line], rig.job(job).get("ReqTRES") or rig.job(job).get("TRES", ""))


def _as_slurm_counts(line: str, request: dict[str, Any], req_tres: str) -> None:
    """Show that the advisor reads the amounts of slurmctld's own ReqTRES, from which the models learn."""
    tres = dict(item.split("=", 1) for item in req_tres.split(",") if "=" in item)
    read = read_job_desc(request["job"]).asked
    ours = {"cpu": read.cpus, "node": read.nodes, "gres/gpu": read.gpus}
    theirs = {name: int(tres.get(name, 0)) for name in ours}
    expect(ours == theirs, f"{line}: the advisor reads {ours}, slurmctld {theirs}")


def _stable(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without what differs between any two runs."""
    left_out = {"counters", "deadline_us"}
    job = {key: value for key, value in request["job"].items() if key != "begin_time"}
    return {**{key: value for key, value in request.items() if key not in left_out}, "job": job}
