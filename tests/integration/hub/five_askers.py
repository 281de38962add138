"""Random submissions as a plugin sends them and as sbatch's options say them, a history for them, and policies."""

import os
import pwd
import random
from dataclasses import dataclass
from typing import Any, Final

from gpuwaste.jobs.history.job_table import GpuUse, JobTable, table_of
from gpuwaste.slurm.accounting.job_record import JobRecord
from gpuwaste.slurm.site.cluster_model import Partition
from gpuwaste.slurm.submit.job_desc import JobDesc, read_job_desc
from gpuwaste.slurm.submit.job_request import JobRequest, script_hash
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.slurm.submit.sbatch_components import read_argv

SCRIPT: Final = "#!/bin/bash\nmodule load cuda\nsrun python train.py\n"
HASH: Final = script_hash(SCRIPT)
ME: Final = pwd.getpwuid(os.getuid()).pw_name
USERS: Final = (ME, "u1", "u2")
NAMES: Final = ("train", "wide", "slow", "fine", "mixed")
PARTITIONS: Final = [
    Partition("gpu", default=True, default_time_s=7200),
    Partition("whole", whole_nodes=True, max_time_s=86400),
    Partition("cpu"),
    Partition("strict", default_time_s=36000),
]
_EXCLUSIVE: Final[tuple[tuple[list[str], dict[str, int]], ...]] = (
    ([], {}), ([], {}), ([], {}), (["--exclusive"], {"shared": 0}), (["--exclusive=user"], {"shared": 2}),
    (["--exclusive", "-s"], {"shared": 1}), (["-s", "--exclusive"], {"shared": 0}),
)  # fmt: skip
_COMMENTS: Final = (
    "",
    "",
    "gpuwaste:override=I know",
    "gpuwaste:override=it works now",
    "gpuwaste:override=",
    "my own",
)
_TARGETS: Final = """
[targets.failure]
warn = 0.3
reject = 0.4
[targets.timeout]
warn = 0.3
reject = "model"
[targets.gpus]
warn = 0.5
reject = 0.9
[targets.memory]
warn = 0.5
[targets.walltime]
warn = 0.4
basis = 3
[floor]
precision = 0.5
[sample]
pass_ratio = 0.2
[budget]
rejects_per_user_per_day = 100000
"""
_HEAD: Final = '[policy]\nname = "{0}"\nmode = "{1}"\n'
POLICIES: Final = {
    "05-off": _HEAD.format("nothing", "off") + '[when]\naccounts = ["x"]\n',
    "10-shadow": _HEAD.format("watch", "shadow") + '[when]\nqos = ["low"]\n' + _TARGETS,
    "20-annotate": _HEAD.format("mark", "annotate") + '[when]\nusers = ["u2"]\nhours = "08:00-18:00"\n' + _TARGETS,
    "30-strict": _HEAD.format("refuse", "reject") + '[when]\npartitions = ["strict", "whole"]\n'
    + '[exempt]\nnames = ["fine"]\naccounts = ["a3"]\n[override]\nper_user_per_day = 3\n' + _TARGETS + "[time_min]\n",
    "40-groups": _HEAD.format("wheel", "warn") + '[when]\ngroups = ["*"]\nweekdays = ["sat", "sun"]\n' + _TARGETS,
    "50-large": _HEAD.format("large", "reject") + "[when]\nmin_gpus = 2\n[override]\nallowed = false\n"
    + "[targets.gpus]\nreject = 0.8\n[targets.failure_or_cancel]\nwarn = 0.5\n[sample]\npass_ratio = 0\n",
    "60-rest": _HEAD.format("rest", "warn") + '[when]\npartitions = ["gpu"]\n' + _TARGETS + "[time_min]\nratio = 0.5\n",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """One submission, from both ends."""

    user: str
    submit: int
    words: tuple[str, ...]
    members: dict[str, Any]

    def request(self, script: str = "job.sh") -> JobRequest:
        """Return what `gpuwaste predict` reads of sbatch's options and the script."""
        line = read_argv([*self.words, script])
        (request,) = read_submission(SCRIPT, line, {}, user=self.user, submit=self.submit, name=script).requests
        return request

    def desc(self) -> JobDesc:
        """Return what the plugin sends."""
        return read_job_desc(self.members)


def draw(rng: random.Random, now: int) -> Drawn:
    """Draw a submission of the next days."""
    name, account = rng.choice([*NAMES, *NAMES, "new"]), rng.choice(["", "a1", "a2", "a3", "x"])
    words, members = ["-J", name], {"name": name, "min_nodes": 1, "script": SCRIPT, "script_hash": HASH}
    partition = rng.choice(["", "gpu", "gpu", "whole", "cpu", "strict", "strict", "gpu,whole", "unknown"])
    qos, comment, minutes = rng.choice(["", "low", "high"]), rng.choice(_COMMENTS), rng.choice([None, 1, 20, 600])
    texts = {"account": account, "partition": partition, "qos": qos, "comment": comment}
    for option, value in texts.items():
        if value:
            words, members = [*words, f"--{option}={value}"], {**members, option: value}
    if minutes:
        words, members = [*words, "-t", str(minutes)], {**members, "time_limit": minutes}
    tasks = rng.choice([1, 4])
    words, members = [*words, f"-n{tasks}"], {**members, "num_tasks": tasks, "min_cpus": tasks}
    if memory := rng.choice([None, 8, 64]):
        words, members = [*words, f"--mem={memory}G"], {**members, "mem_per_node_mb": memory * 1024}
    for more, said in (_gpus(rng), rng.choice(_EXCLUSIVE)):
        words, members = [*words, *more], {**members, **said}
    if rng.random() < 0.2:
        words, members = [*words, "--array=0-3"], {**members, "array_inx": "0-3"}
    return Drawn(rng.choice([*USERS, "stranger"]), now + rng.randrange(3600, 7 * 86400), tuple(words), members)


def _gpus(rng: random.Random) -> tuple[list[str], dict[str, str]]:
    count = rng.choice([0, 1, 2, 4, 4, 4, 8])
    if not count:
        return [], {}
    kind = rng.choice(["", "", "a100:", "h100:"])
    option, member = rng.choice([("--gres=gpu:", "tres_per_node"), ("--gpus=", "tres_per_job")])
    return [f"{option}{kind}{count}"], {member: f"gres:gpu:{kind}{count}"}


def history(rng: random.Random, now: int, count: int = 600) -> tuple[JobTable, list[JobRecord]]:
    """Return ended runs of USERS by NAMES, as a table with what the ledger says of their GPUs, and as records."""
    jobs, uses = [], []
    for number in range(1, count + 1):
        name, limit = rng.choice(NAMES), rng.choice([20, 600]) * 60
        asked = 8 if name == "wide" else rng.choice([1, 4, 4, 8])
        submit = now - 40 * 86400 + number * 3000 + rng.randrange(1000)
        slow = name == "slow" and rng.random() < 0.8
        run = limit if slow else rng.randrange(30, limit // 2)
        fails = rng.random() < {"train": 0.95, "mixed": 0.5, "wide": 0.0}.get(name, 0.05)
        state = "TIMEOUT" if slow else "FAILED" if fails else "COMPLETED"
        jobs.append(
            JobRecord(
                "gw", number, submit, user=rng.choice(USERS), account=rng.choice(["a1", "a2"]), partition="gpu",
                name=name, time_limit_s=limit, req_tres=f"cpu=4,mem=64G,node=1,gres/gpu={asked}", gpus=asked,
                start=submit + 10, end=submit + 10 + run, elapsed_s=run, state=state, max_rss_b=rng.randrange(1 << 33),
            )
        )  # fmt: skip
        active = 1 if name == "wide" else rng.randrange(1, asked + 1)
        uses.append(GpuUse(0.02 if name == "wide" else 0.6, active, 1.0, submit + 20 + run))
    return table_of(jobs, use=uses), jobs
