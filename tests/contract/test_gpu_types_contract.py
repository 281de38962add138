"""Types of GPUs and lists of them drawn at random: ours from script and job description, Slurm's own from the held job.

TRES have the names of types in lower case, as accounting keeps them. The nodes of the drawn types have no slurmd:
slurmctld counts a request for them all the same. sbatch after 22.05 makes tres_per_task of --gpus-per-task by another
reader, _get_gpu_cnt_and_str() in src/common/slurm_opt.c: a type without a count is 0 GPUs of it, a suffix and in 24.11
all but the first item are left out. Of such words what the plugin is given is compared alone.
"""

import random
import re
import string

import pytest
from tests.conftest import ClusterFactory

from gpuwaste.core.errors import GpuwasteError
from gpuwaste.slurm.accounting.tres_amounts import parse_tres
from gpuwaste.slurm.submit.job_desc import read_job_desc
from gpuwaste.slurm.submit.sbatch import read_submission
from gpuwaste.testing.cluster import LoopbackCluster, Variant
from gpuwaste.testing.cluster_commands import tres_of

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
CASES = 500  # requests that Slurm took
MOST = 1500  # submissions
KNOWN = (
    *("1g.5gb", "1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb", "1g.10gb+me", "1080ti", "2080ti", "3090", "4090", "7"),
    *("a100", "nvidia_a100_3g.39gb", "a100-sxm4-80gb", "H100_NVL", "_x", "gpu", "k80", "1k", "2t"),
)
DRAWN = 30
PER_TYPE = 64
PLAIN = re.compile(r"--gpus-per-task=([^:,\s]+:)?\d+(\s|$)")
SUFFIX = re.compile(r"[kmgtp](i?b)?", re.IGNORECASE)  # 22.05 takes such a type without a count for the number 0
LARGEST = (1 << 31) - 1
OPTIONS = ("--gres", "--gres", "--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket")
MEMBERS = {
    "--gres": "tres_per_node",
    "--gpus": "tres_per_job",
    "--gpus-per-node": "tres_per_node",
    "--gpus-per-task": "tres_per_task",
    "--gpus-per-socket": "tres_per_socket",
}
SHOWN = {
    "tres_per_node": "TresPerNode",
    "tres_per_job": "TresPerJob",
    "tres_per_task": "TresPerTask",
    "tres_per_socket": "TresPerSocket",
}


def _types(draw: random.Random) -> list[str]:
    letters = string.ascii_letters + string.digits
    found = dict.fromkeys(KNOWN)
    while len(found) < len(KNOWN) + DRAWN:
        word = draw.choice(letters) + "".join(draw.choices(letters + "._-+", k=draw.randrange(0, 12)))
        if not SUFFIX.fullmatch(word) and word.lower() not in {known.lower() for known in found}:
            found[word] = None
    return list(found)


def _conf(types: list[str]) -> str:
    gres = ",".join(f"gpu:{kind}:{PER_TYPE}" for kind in types) + ",nic:64"
    return "\n".join(
        [
            "GresTypes=gpu,nic",
            "AccountingStorageTRES=gres/gpu," + ",".join(f"gres/gpu:{kind}" for kind in types),
            f"NodeName=drawn[1-2] NodeAddr=127.0.0.9 Port=1 CPUs=16 RealMemory=64000 Gres={gres} State=UNKNOWN",
            "PartitionName=drawn Nodes=drawn[1-2] MaxTime=1-0 DefaultTime=10 State=UP",
        ]
    )


def _item(draw: random.Random, types: list[str]) -> str:
    count = draw.choice(("", "1", "2", "3", "0", "1k", "007"))
    kind = draw.choice(("", *draw.sample(types, 6)))
    return ":".join(word for word in (kind, count) if word) or "1"


def _words(draw: random.Random, types: list[str]) -> tuple[str, str]:
    """Return an option and the words of a job."""
    option, items = draw.choice(OPTIONS), [_item(draw, types) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    if option == "--gres":
        items = [draw.choice(("gpu:", "gpu:", "gres:gpu:")) + item for item in items]
        if draw.random() < 0.3:
            items.insert(draw.randrange(len(items) + 1), draw.choice(("gpu", "nic:2", "nic")))
    more = {"--gpus-per-task": " --ntasks=2", "--gpus-per-socket": " --sockets-per-node=1"}.get(option, "")
    return option, f"{option}={','.join(items)}{more}"


def _records(cluster: LoopbackCluster) -> dict[str, dict[str, str]]:
    text = cluster.run(["scontrol", "-o", "show", "job"], check=False).stdout
    rows: list[dict[str, str]] = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in text.splitlines()]
    return {row["JobId"]: row for row in rows if "JobId" in row}


def _counted(record: dict[str, str]) -> tuple[int, list[str]]:
    """Return Slurm's number, at most ours (a type like 2t without a count is a count), and types, in lower case."""
    amounts = parse_tres(tres_of(record))
    kinds = sorted(name.removeprefix("gres/gpu:") for name in amounts if name.startswith("gres/gpu:"))
    return min(int(amounts.get("gres/gpu", "0")), LARGEST), kinds or [""]


def test_drawn_types_and_lists_are_counted_as_by_slurm(make_cluster: ClusterFactory, draw: random.Random) -> None:
    """Hundreds of held jobs: number and types of the GPUs in sbatch's options and in what a plugin is given."""
    types = _types(draw)
    cluster = make_cluster(Variant(slurm_conf=_conf(types)))
    jobs: dict[str, tuple[str, str]] = {}
    asked = 0
    while len(jobs) < CASES and asked < MOST:
        option, words = _words(draw, types)
        asked += 1
        argv = ["sbatch", "--parsable", "-H", "--partition=drawn", *words.split(), "--wrap=true"]
        done = cluster.run(argv, "alice", check=False)
        if done.returncode == 0:
            jobs[done.stdout.split(";")[0].strip()] = option, words
        elif asked - len(jobs) > MOST // 2:
            pytest.fail(f"{words}: {done.stderr}")
    records = _records(cluster)
    wrong = []
    for job, (option, words) in jobs.items():
        record = records[job]
        seen = _counted(record)
        try:
            (request,) = read_submission(f"#!/bin/sh\n#SBATCH {words}\n").requests
        except GpuwasteError as error:
            wrong.append(f"{words}: we refuse: {error}")
            continue
        member = MEMBERS[option]
        members = {member: record.get(SHOWN[member], "")} | ({"num_tasks": 2} if "--ntasks" in words else {})
        desc = read_job_desc({"user_id": 1, "min_nodes": 1, "min_cpus": 1, **members}).asked
        both = cluster.release <= (22, 5) or option != "--gpus-per-task" or PLAIN.match(words)
        for name, ours in (("script", request), ("plugin", desc)) if both else (("plugin", desc),):
            if (ours.gpus, sorted(ours.gpu_type.lower().split(","))) != seen:
                wrong.append(f"{name} {words} {members}: Slurm {seen}, we {(ours.gpus, ours.gpu_type)}")
    print(f"{len(jobs)} of {asked} taken")  # noqa: T201 - pytest shows it when a test fails
    assert len(jobs) >= CASES
    assert not wrong, f"{len(wrong)} of {len(jobs)}:\n" + "\n".join(wrong[:20])
